#include "kernels/activation/activation.h"
#include "kernels/gpu_kernels.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

// 1 / (1 + exp(-x)) through exp of a negative number only, which cannot overflow.
PORTOLAN_DEVICE float Sigmoid(float x) {
  const float small = Exp(x < 0 ? x : -x);
  return (x < 0 ? small : 1.0f) / (1.0f + small);
}
constexpr float kInverseSqrt2 = 0.70710678f;
constexpr float kInverseSqrt2Pi = 0.39894228f;

template <ActivationKind kKind>
PORTOLAN_DEVICE float Value(float x) {
  if constexpr (kKind == ActivationKind::kRelu) return x > 0 ? x : 0;
  if constexpr (kKind == ActivationKind::kSigmoid) return Sigmoid(x);
  if constexpr (kKind == ActivationKind::kSilu) return x * Sigmoid(x);
  if constexpr (kKind == ActivationKind::kGelu) return 0.5f * x * (1 + Erf(x * kInverseSqrt2));
  return x;
}

template <ActivationKind kKind>
PORTOLAN_DEVICE float Slope(float x, float y) {
  if constexpr (kKind == ActivationKind::kRelu) return y > 0 ? 1 : 0;
  if constexpr (kKind == ActivationKind::kSigmoid) return y * (1 - y);
  if constexpr (kKind == ActivationKind::kSilu) return Sigmoid(x) * (1 + x * (1 - Sigmoid(x)));
  if constexpr (kKind == ActivationKind::kGelu) {
    return 0.5f * (1 + Erf(x * kInverseSqrt2)) + x * kInverseSqrt2Pi * Exp(-0.5f * x * x);
  }
  return 1;
}

template <ActivationKind kKind>
struct ActivationForwardBody {
  static constexpr const char* kName = "bias_activation_forward";
  static constexpr int kSums = 0;
  static constexpr bool kKeepsInput = kKind == ActivationKind::kSilu || kKind == ActivationKind::kGelu;
  int64_t x_stride;
  float* x;           // [rows, width]
  const float* bias;  // [width] or null
  int64_t y_stride;
  float* y;  // [rows, width]

  template <int kWidth>
  PORTOLAN_DEVICE void Visit(int64_t row, int64_t column, device::Vec<float, kWidth>*) const {
    auto values = LoadVec<kWidth>(x + row * x_stride + column);
    if (bias != nullptr) {
      const auto biases = LoadVec<kWidth>(bias + column);
      for (int k = 0; k < kWidth; ++k) values.value[k] += biases.value[k];
      // The biased input, as the contract has it, unless x is written as y anyway.
      if (kKeepsInput || x != y) StoreVec(x + row * x_stride + column, values);
    }
    for (int k = 0; k < kWidth; ++k) values.value[k] = Value<kKind>(values.value[k]);
    StoreVec(y + row * y_stride + column, values);
  }
};

template <ActivationKind kKind>
struct ActivationBackwardBody {
  static constexpr const char* kName = "bias_activation_backward";
  static constexpr int kSums = 1;  // dbias
  static constexpr bool kReadsX = kKind == ActivationKind::kSilu || kKind == ActivationKind::kGelu;
  static constexpr bool kReadsY = kKind == ActivationKind::kRelu || kKind == ActivationKind::kSigmoid;
  int64_t x_stride;
  const float* x;  // [rows, width]
  int64_t y_stride;
  const float* y;  // [rows, width]
  int64_t dy_stride;
  const float* dy;  // [rows, width]
  int64_t dx_stride;
  float* dx;  // [rows, width]

  template <int kWidth>
  PORTOLAN_DEVICE void Visit(int64_t row, int64_t column, device::Vec<float, kWidth>* sums) const {
    auto gradient = LoadVec<kWidth>(dy + row * dy_stride + column);
    device::Vec<float, kWidth> inputs = {}, outputs = {};
    if constexpr (kReadsX) inputs = LoadVec<kWidth>(x + row * x_stride + column);
    if constexpr (kReadsY) outputs = LoadVec<kWidth>(y + row * y_stride + column);
    for (int k = 0; k < kWidth; ++k) {
      gradient.value[k] *= Slope<kKind>(inputs.value[k], outputs.value[k]);
      sums[0].value[k] += gradient.value[k];
    }
    StoreVec(dx + row * dx_stride + column, gradient);
  }
};

template <ActivationKind kKind>
void Forward(int64_t rows, int64_t width, int64_t x_stride, float* x, const float* bias, int64_t y_stride, float* y,
             device::Stream stream) {
  const bool aligned = (width | x_stride | y_stride) % 4 == 0 && IsAligned16(x) && IsAligned16(y) &&
                       (bias == nullptr || IsAligned16(bias));
  Visit(stream, aligned ? Alignment::k16Bytes : Alignment::kAny, rows, width,
        ActivationForwardBody<kKind>{x_stride, x, bias, y_stride, y});
}

template <ActivationKind kKind>
void Backward(int64_t rows, int64_t width, const ActivationBackwardBody<kKind>& body, float* dbias,
              device::Stream stream) {
  bool aligned = (width | body.dy_stride | body.dx_stride) % 4 == 0 && IsAligned16(body.dy) && IsAligned16(body.dx);
  if (body.kReadsX) aligned = aligned && body.x_stride % 4 == 0 && IsAligned16(body.x);
  if (body.kReadsY) aligned = aligned && body.y_stride % 4 == 0 && IsAligned16(body.y);
  const Alignment alignment = aligned ? Alignment::k16Bytes : Alignment::kAny;
  if (dbias == nullptr) {
    Visit(stream, alignment, rows, width, body);
  } else {
    VisitAndSum(stream, alignment, rows, width, body, {dbias});
  }
}

}  // namespace

void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y, device::Stream stream) {
  switch (kind) {
    case ActivationKind::kNone:
      return Forward<ActivationKind::kNone>(rows, width, x_stride, x, bias, y_stride, y, stream);
    case ActivationKind::kRelu:
      return Forward<ActivationKind::kRelu>(rows, width, x_stride, x, bias, y_stride, y, stream);
    case ActivationKind::kSigmoid:
      return Forward<ActivationKind::kSigmoid>(rows, width, x_stride, x, bias, y_stride, y, stream);
    case ActivationKind::kSilu:
      return Forward<ActivationKind::kSilu>(rows, width, x_stride, x, bias, y_stride, y, stream);
    case ActivationKind::kGelu:
      return Forward<ActivationKind::kGelu>(rows, width, x_stride, x, bias, y_stride, y, stream);
  }
}

void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias, device::Stream stream) {
  const auto run = [&](auto body) { Backward(rows, width, body, dbias, stream); };
  switch (kind) {
    case ActivationKind::kNone:
      return run(ActivationBackwardBody<ActivationKind::kNone>{x_stride, x, y_stride, y, dy_stride, dy, dx_stride, dx});
    case ActivationKind::kRelu:
      return run(ActivationBackwardBody<ActivationKind::kRelu>{x_stride, x, y_stride, y, dy_stride, dy, dx_stride, dx});
    case ActivationKind::kSigmoid:
      return run(
          ActivationBackwardBody<ActivationKind::kSigmoid>{x_stride, x, y_stride, y, dy_stride, dy, dx_stride, dx});
    case ActivationKind::kSilu:
      return run(ActivationBackwardBody<ActivationKind::kSilu>{x_stride, x, y_stride, y, dy_stride, dy, dx_stride, dx});
    case ActivationKind::kGelu:
      return run(ActivationBackwardBody<ActivationKind::kGelu>{x_stride, x, y_stride, y, dy_stride, dy, dx_stride, dx});
  }
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
