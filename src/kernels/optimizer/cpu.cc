#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/optimizer/optimizer.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kBlock = 4096;

struct Corrections {
  float first = 1;   // 1 / (1 - beta1^t)
  float second = 1;  // 1 / (1 - beta2^t)
};

// `second` is Adam's v, otherwise unused.
PORTOLAN_CPU_CLONES void StepBlock(const DenseUpdate& update, const Corrections& corrections, int64_t count,
                                   const float* __restrict gradient, float* __restrict weights, float* __restrict state,
                                   float* __restrict second) {
  const float lr = update.learning_rate, eps = update.epsilon, scale = update.gradient_scale;
  const float beta1 = update.beta1, beta2 = update.beta2, momentum = update.momentum;
  switch (update.kind) {
    case DenseUpdateKind::kSgd:
      for (int64_t i = 0; i < count; ++i) weights[i] -= lr * (scale * gradient[i]);
      return;
    case DenseUpdateKind::kMomentum:
      for (int64_t i = 0; i < count; ++i) {
        state[i] = momentum * state[i] + scale * gradient[i];
        weights[i] -= lr * state[i];
      }
      return;
    case DenseUpdateKind::kAdagrad:
      for (int64_t i = 0; i < count; ++i) {
        const float g = scale * gradient[i];
        state[i] += g * g;
        weights[i] -= lr * g / (std::sqrt(state[i]) + eps);
      }
      return;
    case DenseUpdateKind::kAdam:
      for (int64_t i = 0; i < count; ++i) {
        const float g = scale * gradient[i];
        state[i] = beta1 * state[i] + (1 - beta1) * g;
        second[i] = beta2 * second[i] + (1 - beta2) * g * g;
        weights[i] -= lr * (state[i] * corrections.first) / (std::sqrt(second[i] * corrections.second) + eps);
      }
      return;
  }
}

PORTOLAN_CPU_CLONES double BlockSquares(int64_t count, const float* values) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

}  // namespace

void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state) {
  Corrections corrections;
  if (update.kind == DenseUpdateKind::kAdam) {
    const auto step = static_cast<double>(update.step);
    corrections.first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), step)));
    corrections.second = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), step)));
  }
  const bool stateless = update.kind == DenseUpdateKind::kSgd;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i += kBlock) {
    StepBlock(update, corrections, std::min(kBlock, count - i), gradient + i, weights + i,
              stateless ? nullptr : state + i, update.kind == DenseUpdateKind::kAdam ? state + count + i : nullptr);
  }
}

double SquaredNorm(int64_t count, const float* values) {
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    sums[block] = BlockSquares(std::min(kBlock, count - block * kBlock), values + block * kBlock);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace portolan::kernels::cpu
