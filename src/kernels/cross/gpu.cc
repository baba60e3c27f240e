#include "kernels/cross/cross.h"
#include "kernels/gpu_kernels.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

struct CrossForwardBody {
  static constexpr const char* kName = "cross_forward";
  static constexpr int kSums = 0;
  int64_t width;
  const float* x0;    // [batch, width]
  const float* u;     // [batch, width]
  const float* bias;  // [width]
  const float* x;     // [batch, width]
  float* y;           // [batch, width]

  template <int kWidth>
  PORTOLAN_DEVICE void Visit(int64_t row, int64_t column, device::Vec<float, kWidth>*) const {
    const int64_t i = row * width + column;
    const auto x0_values = LoadVec<kWidth>(x0 + i), u_values = LoadVec<kWidth>(u + i);
    const auto x_values = LoadVec<kWidth>(x + i), bias_values = LoadVec<kWidth>(bias + column);
    device::Vec<float, kWidth> result;
    for (int k = 0; k < kWidth; ++k) {
      result.value[k] = x0_values.value[k] * (u_values.value[k] + bias_values.value[k]) + x_values.value[k];
    }
    StoreVec(y + i, result);
  }
};

struct CrossBackwardBody {
  static constexpr const char* kName = "cross_backward";
  static constexpr int kSums = 1;  // dbias
  int64_t width;
  const float* x0;    // [batch, width]
  const float* u;     // [batch, width]
  const float* bias;  // [width]
  const float* dy;    // [batch, width]
  float* du;          // [batch, width]
  float* dx0;         // [batch, width], added to

  template <int kWidth>
  PORTOLAN_DEVICE void Visit(int64_t row, int64_t column, device::Vec<float, kWidth>* sums) const {
    const int64_t i = row * width + column;
    const auto x0_values = LoadVec<kWidth>(x0 + i), u_values = LoadVec<kWidth>(u + i);
    const auto dy_values = LoadVec<kWidth>(dy + i), bias_values = LoadVec<kWidth>(bias + column);
    auto dx0_values = LoadVec<kWidth>(dx0 + i);
    device::Vec<float, kWidth> du_values;
    for (int k = 0; k < kWidth; ++k) {
      du_values.value[k] = dy_values.value[k] * x0_values.value[k];
      dx0_values.value[k] += dy_values.value[k] * (u_values.value[k] + bias_values.value[k]);
      sums[0].value[k] += du_values.value[k];
    }
    StoreVec(du + i, du_values);
    StoreVec(dx0 + i, dx0_values);
  }
};

}  // namespace

void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y, device::Stream stream) {
  const bool aligned =
      width % 4 == 0 && IsAligned16(x0) && IsAligned16(u) && IsAligned16(bias) && IsAligned16(x) && IsAligned16(y);
  Visit(stream, aligned ? Alignment::k16Bytes : Alignment::kAny, batch, width,
        CrossForwardBody{width, x0, u, bias, x, y});
}

void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0, device::Stream stream) {
  const bool aligned = width % 4 == 0 && IsAligned16(x0) && IsAligned16(u) && IsAligned16(bias) && IsAligned16(dy) &&
                       IsAligned16(du) && IsAligned16(dx0);
  VisitAndSum(stream, aligned ? Alignment::k16Bytes : Alignment::kAny, batch, width,
              CrossBackwardBody{width, x0, u, bias, dy, du, dx0}, {dbias});
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
