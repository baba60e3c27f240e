#include <cmath>

#include "kernels/cuda_rows.h"
#include "kernels/optimizer/optimizer.h"

namespace portolan::kernels::cuda {
namespace {

// A zero numerator gives no step whatever epsilon is: padding between parameters stays zero.
__device__ __forceinline__ float Quotient(float numerator, float root, float epsilon) {
  return numerator == 0 ? 0.0f : numerator / (root + epsilon);
}

template <DenseUpdateKind kKind>
__global__ void __launch_bounds__(256)
    DenseStepKernel(DenseUpdate update, float correction1, float correction2, int64_t count, const float* gradient,
                    float* weights, float* state, Bf16* copy, const StepControl* control) {
  if (control->apply == 0) return;
  const float scale = update.gradient_scale * control->gradient_scale;
  const int64_t i = (blockIdx.x * int64_t{256} + threadIdx.x) * 4;
  if (i >= count) return;
  const auto change = LoadNumbers<4>(gradient + i);
  auto weight = LoadNumbers<4>(weights + i);
  Numbers<4> first = {}, second = {};
  if constexpr (kKind != DenseUpdateKind::kSgd) first = LoadNumbers<4>(state + i);
  if constexpr (kKind == DenseUpdateKind::kAdam) second = LoadNumbers<4>(state + count + i);
  for (int k = 0; k < 4; ++k) {
    const float g = scale * change.value[k];
    float step = g;
    if constexpr (kKind == DenseUpdateKind::kMomentum) {
      step = first.value[k] = update.momentum * first.value[k] + g;
    } else if constexpr (kKind == DenseUpdateKind::kAdagrad) {
      first.value[k] += g * g;
      step = Quotient(g, sqrtf(first.value[k]), update.epsilon);
    } else if constexpr (kKind == DenseUpdateKind::kAdam) {
      first.value[k] = update.beta1 * first.value[k] + (1 - update.beta1) * g;
      second.value[k] = update.beta2 * second.value[k] + (1 - update.beta2) * g * g;
      step = Quotient(first.value[k] * correction1, sqrtf(second.value[k] * correction2), update.epsilon);
    }
    weight.value[k] -= update.learning_rate * step;
  }
  StoreNumbers(weight, weights + i);
  if constexpr (kKind != DenseUpdateKind::kSgd) StoreNumbers(first, state + i);
  if constexpr (kKind == DenseUpdateKind::kAdam) StoreNumbers(second, state + count + i);
  if (copy != nullptr) StoreNumbers(weight, copy + i);
}

template <DenseUpdateKind kKind>
void Step(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state, Bf16* copy,
          const StepControl* control, device::Stream stream) {
  const auto t = static_cast<double>(update.step);
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), t)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), t)));
  DenseStepKernel<kKind><<<static_cast<unsigned>(DivideUp(count, 1024)), 256, 0, Native(stream)>>>(
      update, correction1, correction2, count, gradient, weights, state, copy, control);
  CheckLaunch("dense optimizer");
}

// As in engine/network.cc: uniform in (0, 1) from 24 bits of (key, index), then Box and Muller.
__device__ double UniformOf(uint32_t key, uint64_t index) {
  const uint32_t bits =
      RandomBits(key + static_cast<uint32_t>(index >> 32) * 0x9e3779b9u, static_cast<uint32_t>(index));
  return (static_cast<double>(bits >> 8) + 0.5) / 16777216.0;
}
__global__ void NormalKernel(uint32_t key, double deviation, int64_t rows, int64_t width, int64_t stride,
                             float* values) {
  constexpr double kPi = 3.14159265358979323846;
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < rows * width; i += gridDim.x * int64_t{256}) {
    const auto n = static_cast<uint64_t>(i);
    const double normal = sqrt(-2 * log(UniformOf(key, 2 * n))) * cos(2 * kPi * UniformOf(key, 2 * n + 1));
    values[i / width * stride + i % width] = static_cast<float>(deviation * normal);
  }
}

}  // namespace

void DenseUpdateStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state,
                     Bf16* copy, const StepControl* control, device::Stream stream) {
  if (count <= 0) return;
  switch (update.kind) {
    case DenseUpdateKind::kSgd:
      return Step<DenseUpdateKind::kSgd>(update, count, gradient, weights, state, copy, control, stream);
    case DenseUpdateKind::kMomentum:
      return Step<DenseUpdateKind::kMomentum>(update, count, gradient, weights, state, copy, control, stream);
    case DenseUpdateKind::kAdagrad:
      return Step<DenseUpdateKind::kAdagrad>(update, count, gradient, weights, state, copy, control, stream);
    case DenseUpdateKind::kAdam:
      return Step<DenseUpdateKind::kAdam>(update, count, gradient, weights, state, copy, control, stream);
  }
}

void InitialNormal(uint32_t key, double deviation, int64_t rows, int64_t width, int64_t stride, float* values,
                   device::Stream stream) {
  const int64_t blocks = DivideUp(rows * width, 256);
  if (blocks == 0) return;
  NormalKernel<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), 256, 0, Native(stream)>>>(key, deviation, rows,
                                                                                                 width, stride, values);
  CheckLaunch("initial values");
}

}  // namespace portolan::kernels::cuda
