#include <algorithm>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/cross/cross.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kRowsPerBlock = 64;  // fixed: the order of the bias sums must not depend on the threads

PORTOLAN_CPU_CLONES void ForwardRows(int64_t rows, int64_t width, const float* __restrict x0, const float* __restrict u,
                                     const float* __restrict bias, const float* __restrict x, float* __restrict y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < width; ++n) {
      y[r * width + n] = x0[r * width + n] * (u[r * width + n] + bias[n]) + x[r * width + n];
    }
  }
}

// sum [width] = column sums of du over these rows.
PORTOLAN_CPU_CLONES void BackwardRows(int64_t rows, int64_t width, const float* __restrict x0,
                                      const float* __restrict u, const float* __restrict bias,
                                      const float* __restrict dy, float* __restrict du, float* __restrict dx0,
                                      float* __restrict sum) {
  for (int64_t n = 0; n < width; ++n) sum[n] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = r * width + n;
      const float gradient = dy[i] * x0[i];
      dx0[i] += dy[i] * (u[i] + bias[n]);
      du[i] = gradient;
      sum[n] += gradient;
    }
  }
}

PORTOLAN_CPU_CLONES void AddBlocks(int64_t blocks, int64_t width, const float* __restrict sums,
                                   float* __restrict total) {
  for (int64_t n = 0; n < width; ++n) total[n] = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t n = 0; n < width; ++n) total[n] += sums[block * width + n];
  }
}

}  // namespace

void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < batch; b += kRowsPerBlock) {
    ForwardRows(std::min(kRowsPerBlock, batch - b), width, x0 + b * width, u + b * width, bias, x + b * width,
                y + b * width);
  }
}

void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0) {
  const int64_t blocks = (batch + kRowsPerBlock - 1) / kRowsPerBlock;
  std::vector<float> sums(static_cast<size_t>(blocks * width));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t at = block * kRowsPerBlock * width;
    BackwardRows(std::min(kRowsPerBlock, batch - block * kRowsPerBlock), width, x0 + at, u + at, bias, dy + at, du + at,
                 dx0 + at, sums.data() + block * width);
  }
  AddBlocks(blocks, width, sums.data(), dbias);
}

}  // namespace portolan::kernels::cpu
