#include <cmath>

#include "kernels/layer_norm/layer_norm.h"

namespace portolan::kernels::reference {

void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * width;
    double sum = 0;
    for (int64_t n = 0; n < width; ++n) sum += row[n];
    const double average = sum / static_cast<double>(width);
    double variance = 0;
    for (int64_t n = 0; n < width; ++n) variance += (row[n] - average) * (row[n] - average);
    variance /= static_cast<double>(width);
    const double inverse = 1 / std::sqrt(variance + kLayerNormEpsilon);
    mean[r] = static_cast<float>(average);
    rstd[r] = static_cast<float>(inverse);
    for (int64_t n = 0; n < width; ++n) {
      y[r * width + n] = static_cast<float>((row[n] - average) * inverse * gamma[n] + beta[n]);
    }
  }
}

void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta) {
  for (int64_t n = 0; n < width; ++n) {
    double scale = 0, shift = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * width + n;
      scale += static_cast<double>(dy[i]) * (x[i] - mean[r]) * rstd[r];
      shift += dy[i];
    }
    dgamma[n] = static_cast<float>(scale);
    dbeta[n] = static_cast<float>(shift);
  }
  // With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)).
  for (int64_t r = 0; r < rows; ++r) {
    double mean_g = 0, mean_gh = 0;
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = r * width + n;
      const double g = static_cast<double>(dy[i]) * gamma[n];
      mean_g += g / static_cast<double>(width);
      mean_gh += g * (x[i] - mean[r]) * rstd[r] / static_cast<double>(width);
    }
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = r * width + n;
      const double h = (static_cast<double>(x[i]) - mean[r]) * rstd[r];
      dx[i] = static_cast<float>(rstd[r] * (static_cast<double>(dy[i]) * gamma[n] - mean_g - h * mean_gh));
    }
  }
}

}  // namespace portolan::kernels::reference
