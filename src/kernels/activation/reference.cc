#include <cmath>

#include "kernels/activation/activation.h"

namespace portolan::kernels::reference {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Value(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
    case ActivationKind::kSigmoid:
      return Sigmoid(x);
    case ActivationKind::kSilu:
      return x * Sigmoid(x);
    case ActivationKind::kGelu:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
  }
  return x;
}

double Slope(ActivationKind kind, double x, double y) {
  switch (kind) {
    case ActivationKind::kNone:
      return 1;
    case ActivationKind::kRelu:
      return y > 0 ? 1 : 0;
    case ActivationKind::kSigmoid:
      return y * (1 - y);
    case ActivationKind::kSilu:
      return Sigmoid(x) * (1 + x * (1 - Sigmoid(x)));
    case ActivationKind::kGelu: {
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
      return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * density;
    }
  }
  return 1;
}

}  // namespace

void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < width; ++n) {
      float& input = x[r * x_stride + n];
      if (bias != nullptr) input += bias[n];
      y[r * y_stride + n] = static_cast<float>(Value(kind, input));
    }
  }
}

void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias) {
  const bool reads_x = kind == ActivationKind::kSilu || kind == ActivationKind::kGelu;
  const bool reads_y = kind == ActivationKind::kRelu || kind == ActivationKind::kSigmoid;
  for (int64_t n = 0; n < width; ++n) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double input = reads_x ? x[r * x_stride + n] : 0;
      const double output = reads_y ? y[r * y_stride + n] : 0;
      const auto gradient = static_cast<float>(dy[r * dy_stride + n] * Slope(kind, input, output));
      dx[r * dx_stride + n] = gradient;
      sum += gradient;
    }
    if (dbias != nullptr) dbias[n] = static_cast<float>(sum);
  }
}

}  // namespace portolan::kernels::reference
