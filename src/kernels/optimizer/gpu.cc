#include <cmath>

#include "kernels/gpu_kernels.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int kStepThreads = 256;
constexpr int64_t kSquaresPerBlock = 4096;

// kWidth parameters a work-item; `count` is a multiple of kWidth.
template <DenseUpdateKind kKind, int kWidth>
struct DenseStep {
  static constexpr const char* kName = "dense_optimizer_step";
  static constexpr int kThreads = kStepThreads;
  using Shared = NoShared;
  DenseUpdate update;
  float correction1;  // 1 / (1 - beta1^t)
  float correction2;  // 1 / (1 - beta2^t)
  int64_t count;
  const float* gradient;  // [count]
  float* weights;         // [count]
  float* state;           // [DenseStateFloats(kKind), count]

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const int64_t i = (BlockIndex() * kThreads + ThreadIndex()) * kWidth;
    if (i >= count) return;
    auto change = LoadVec<kWidth>(gradient + i);
    auto weight = LoadVec<kWidth>(weights + i);
    device::Vec<float, kWidth> first = {}, second = {};
    if constexpr (kKind != DenseUpdateKind::kSgd) first = LoadVec<kWidth>(state + i);
    if constexpr (kKind == DenseUpdateKind::kAdam) second = LoadVec<kWidth>(state + count + i);
    for (int k = 0; k < kWidth; ++k) {
      const float g = update.gradient_scale * change.value[k];
      float step = g;
      if constexpr (kKind == DenseUpdateKind::kMomentum) {
        step = first.value[k] = update.momentum * first.value[k] + g;
      } else if constexpr (kKind == DenseUpdateKind::kAdagrad) {
        first.value[k] += g * g;
        step = g / (Sqrt(first.value[k]) + update.epsilon);
      } else if constexpr (kKind == DenseUpdateKind::kAdam) {
        first.value[k] = update.beta1 * first.value[k] + (1 - update.beta1) * g;
        second.value[k] = update.beta2 * second.value[k] + (1 - update.beta2) * g * g;
        step = first.value[k] * correction1 / (Sqrt(second.value[k] * correction2) + update.epsilon);
      }
      weight.value[k] -= update.learning_rate * step;
    }
    StoreVec(weights + i, weight);
    if constexpr (kKind != DenseUpdateKind::kSgd) StoreVec(state + i, first);
    if constexpr (kKind == DenseUpdateKind::kAdam) StoreVec(state + count + i, second);
  }
};

template <DenseUpdateKind kKind>
void Step(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state,
          device::Stream stream) {
  const auto t = static_cast<double>(update.step);
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), t)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), t)));
  const bool aligned = count % 4 == 0 && IsAligned16(gradient) && IsAligned16(weights) && IsAligned16(state);
  if (aligned) {
    Launch(stream, CeilDivide(count, kStepThreads * 4),
           DenseStep<kKind, 4>{update, correction1, correction2, count, gradient, weights, state});
  } else {
    Launch(stream, CeilDivide(count, kStepThreads),
           DenseStep<kKind, 1>{update, correction1, correction2, count, gradient, weights, state});
  }
}

struct Squares {
  static constexpr const char* kName = "squared_norm";
  static constexpr int kThreads = 256;
  struct Shared {
    BlockSumScratch<double, kThreads> scratch;
  };
  int64_t count;
  const float* values;  // [count]
  double* partial;      // [blocks]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const int64_t first = BlockIndex() * kSquaresPerBlock;
    const int64_t end = first + kSquaresPerBlock < count ? first + kSquaresPerBlock : count;
    double sum = 0;
    for (int64_t i = first + ThreadIndex(); i < end; i += kThreads) sum += static_cast<double>(values[i]) * values[i];
    sum = BlockSum(sum, shared.scratch);
    if (ThreadIndex() == 0) partial[BlockIndex()] = sum;
  }
};

}  // namespace

void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state,
                        device::Stream stream) {
  switch (update.kind) {
    case DenseUpdateKind::kSgd:
      return Step<DenseUpdateKind::kSgd>(update, count, gradient, weights, state, stream);
    case DenseUpdateKind::kMomentum:
      return Step<DenseUpdateKind::kMomentum>(update, count, gradient, weights, state, stream);
    case DenseUpdateKind::kAdagrad:
      return Step<DenseUpdateKind::kAdagrad>(update, count, gradient, weights, state, stream);
    case DenseUpdateKind::kAdam:
      return Step<DenseUpdateKind::kAdam>(update, count, gradient, weights, state, stream);
  }
}

double SquaredNorm(int64_t count, const float* values, device::Stream stream) {
  const int64_t blocks = CeilDivide(count, kSquaresPerBlock);
  Scratch<double> partial(stream, blocks);
  Launch(stream, blocks, Squares{count, values, partial.data()});
  return SumOnHost(stream, partial.data(), blocks);
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
