#include <algorithm>

#include "base/cpu_clones.h"
#include "kernels/cross/cross.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kBlock = 4096;

PORTOLAN_CPU_CLONES void MultiplyBlock(int64_t n, const float* __restrict a, const float* __restrict b,
                                       float* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}
PORTOLAN_CPU_CLONES void AddBlock(int64_t n, const float* a, const float* b, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
PORTOLAN_CPU_CLONES void AccumulateBlock(int64_t n, const float* __restrict a, float* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += a[i];
}

}  // namespace

void Multiply(int64_t count, const float* a, const float* b, float* out) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i += kBlock) MultiplyBlock(std::min(kBlock, count - i), a + i, b + i, out + i);
}

void Add(int64_t count, const float* a, const float* b, float* out) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i += kBlock) AddBlock(std::min(kBlock, count - i), a + i, b + i, out + i);
}

void Accumulate(int64_t count, const float* a, float* sum) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i += kBlock) AccumulateBlock(std::min(kBlock, count - i), a + i, sum + i);
}

}  // namespace portolan::kernels::cpu
