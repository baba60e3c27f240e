#include "kernels/gpu_kernels.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int kRowLanes = kWaveSize;  // one wave a row

struct LayerNormRows {
  static constexpr const char* kName = "layer_norm_forward";
  static constexpr int kThreads = 256;
  using Shared = NoShared;
  int64_t rows;
  int64_t width;
  const float* x;      // [rows, width]
  const float* gamma;  // [width]
  const float* beta;   // [width]
  float* y;            // [rows, width]
  float* mean;         // [rows]
  float* rstd;         // [rows]

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const int64_t row = BlockIndex() * (kThreads / kRowLanes) + WaveIndex();
    if (row >= rows) return;  // whole waves
    const float* in = x + row * width;
    float sum = 0;
    for (int64_t n = LaneIndex(); n < width; n += kRowLanes) sum += in[n];
    const float average = WaveSum(sum) / static_cast<float>(width);
    float squares = 0;
    for (int64_t n = LaneIndex(); n < width; n += kRowLanes) squares += (in[n] - average) * (in[n] - average);
    const float inverse = 1.0f / Sqrt(WaveSum(squares) / static_cast<float>(width) + kLayerNormEpsilon);
    for (int64_t n = LaneIndex(); n < width; n += kRowLanes) {
      y[row * width + n] = (in[n] - average) * inverse * gamma[n] + beta[n];
    }
    if (LaneIndex() == 0) {
      mean[row] = average;
      rstd[row] = inverse;
    }
  }
};

// With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)).
struct LayerNormRowGradients {
  static constexpr const char* kName = "layer_norm_backward";
  static constexpr int kThreads = 256;
  using Shared = NoShared;
  int64_t rows;
  int64_t width;
  const float* x;      // [rows, width]
  const float* gamma;  // [width]
  const float* mean;   // [rows]
  const float* rstd;   // [rows]
  const float* dy;     // [rows, width]
  float* dx;           // [rows, width]; may be dy

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const int64_t row = BlockIndex() * (kThreads / kRowLanes) + WaveIndex();
    if (row >= rows) return;  // whole waves
    const float average = mean[row], inverse = rstd[row];
    float sum_g = 0, sum_gh = 0;
    for (int64_t n = LaneIndex(); n < width; n += kRowLanes) {
      const float g = dy[row * width + n] * gamma[n];
      sum_g += g;
      sum_gh += g * (x[row * width + n] - average) * inverse;
    }
    const float mean_g = WaveSum(sum_g) / static_cast<float>(width);
    const float mean_gh = WaveSum(sum_gh) / static_cast<float>(width);
    for (int64_t n = LaneIndex(); n < width; n += kRowLanes) {
      const float h = (x[row * width + n] - average) * inverse;
      dx[row * width + n] = inverse * (dy[row * width + n] * gamma[n] - mean_g - h * mean_gh);
    }
  }
};

struct LayerNormParameterGradients {
  static constexpr const char* kName = "layer_norm_parameter_gradients";
  static constexpr int kSums = 2;  // dgamma, dbeta
  int64_t width;
  const float* x;     // [rows, width]
  const float* mean;  // [rows]
  const float* rstd;  // [rows]
  const float* dy;    // [rows, width]

  template <int kWidth>
  PORTOLAN_DEVICE void Visit(int64_t row, int64_t column, device::Vec<float, kWidth>* sums) const {
    const auto x_values = LoadVec<kWidth>(x + row * width + column);
    const auto dy_values = LoadVec<kWidth>(dy + row * width + column);
    for (int k = 0; k < kWidth; ++k) {
      sums[0].value[k] += dy_values.value[k] * (x_values.value[k] - mean[row]) * rstd[row];
      sums[1].value[k] += dy_values.value[k];
    }
  }
};

}  // namespace

void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd, device::Stream stream) {
  Launch(stream, CeilDivide(rows, LayerNormRows::kThreads / kRowLanes),
         LayerNormRows{rows, width, x, gamma, beta, y, mean, rstd});
}

void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta,
                       device::Stream stream) {
  // The sums first: dx may overwrite dy.
  const bool aligned = width % 4 == 0 && IsAligned16(x) && IsAligned16(dy);
  VisitAndSum(stream, aligned ? Alignment::k16Bytes : Alignment::kAny, rows, width,
              LayerNormParameterGradients{width, x, mean, rstd, dy}, {dgamma, dbeta});
  Launch(stream, CeilDivide(rows, LayerNormRowGradients::kThreads / kRowLanes),
         LayerNormRowGradients{rows, width, x, gamma, mean, rstd, dy, dx});
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
