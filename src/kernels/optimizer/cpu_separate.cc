#include <algorithm>
#include <cmath>

#include "base/cpu_clones.h"
#include "kernels/optimizer/optimizer.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kBlock = 4096;

PORTOLAN_CPU_CLONES void Scale(int64_t n, float factor, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = factor * from[i];
}
// to = decay to + share from.
PORTOLAN_CPU_CLONES void Blend(int64_t n, float decay, float share, const float* __restrict from,
                               float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = decay * to[i] + share * from[i];
}
// to = decay to + share from^2.
PORTOLAN_CPU_CLONES void BlendSquare(int64_t n, float decay, float share, const float* __restrict from,
                                     float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = decay * to[i] + share * from[i] * from[i];
}
PORTOLAN_CPU_CLONES void SquareRoot(int64_t n, float scale, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = std::sqrt(from[i] * scale);
}
PORTOLAN_CPU_CLONES void AddNumber(int64_t n, float number, float* values) {
  for (int64_t i = 0; i < n; ++i) values[i] += number;
}
// to -= rate from / by.
PORTOLAN_CPU_CLONES void SubtractQuotient(int64_t n, float rate, const float* __restrict from,
                                          const float* __restrict by, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] -= rate * from[i] / by[i];
}

template <typename Visit>
void Pass(int64_t count, Visit visit) {
#pragma omp parallel for schedule(static) if (count > kBlock)
  for (int64_t i = 0; i < count; i += kBlock) visit(i, std::min(kBlock, count - i));
}

}  // namespace

void DenseOptimizerStepSeparate(const DenseUpdate& update, int64_t count, const float* gradient, float* weights,
                                float* state, float* second, float* scratch) {
  const float* g = gradient;
  if (update.gradient_scale != 1.0f) {
    float* scaled = scratch + count;
    Pass(count, [&](int64_t i, int64_t n) { Scale(n, update.gradient_scale, gradient + i, scaled + i); });
    g = scaled;
  }
  switch (update.kind) {
    case DenseUpdateKind::kSgd:
      Pass(count, [&](int64_t i, int64_t n) { Blend(n, 1, -update.learning_rate, g + i, weights + i); });
      return;
    case DenseUpdateKind::kMomentum:
      Pass(count, [&](int64_t i, int64_t n) { Blend(n, update.momentum, 1, g + i, state + i); });
      Pass(count, [&](int64_t i, int64_t n) { Blend(n, 1, -update.learning_rate, state + i, weights + i); });
      return;
    case DenseUpdateKind::kAdagrad:
      Pass(count, [&](int64_t i, int64_t n) { BlendSquare(n, 1, 1, g + i, state + i); });
      Pass(count, [&](int64_t i, int64_t n) { SquareRoot(n, 1, state + i, scratch + i); });
      Pass(count, [&](int64_t i, int64_t n) { AddNumber(n, update.epsilon, scratch + i); });
      Pass(count,
           [&](int64_t i, int64_t n) { SubtractQuotient(n, update.learning_rate, g + i, scratch + i, weights + i); });
      return;
    case DenseUpdateKind::kAdam: {
      const auto step = static_cast<double>(update.step);
      const auto first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), step)));
      const auto correction = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), step)));
      Pass(count, [&](int64_t i, int64_t n) { Blend(n, update.beta1, 1 - update.beta1, g + i, state + i); });
      Pass(count, [&](int64_t i, int64_t n) { BlendSquare(n, update.beta2, 1 - update.beta2, g + i, second + i); });
      Pass(count, [&](int64_t i, int64_t n) { SquareRoot(n, correction, second + i, scratch + i); });
      Pass(count, [&](int64_t i, int64_t n) { AddNumber(n, update.epsilon, scratch + i); });
      Pass(count, [&](int64_t i, int64_t n) {
        SubtractQuotient(n, update.learning_rate * first, state + i, scratch + i, weights + i);
      });
      return;
    }
  }
}

}  // namespace portolan::kernels::cpu
