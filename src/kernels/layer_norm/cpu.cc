#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/layer_norm/layer_norm.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kRowsPerBlock = 64;

PORTOLAN_CPU_CLONES void ForwardRow(int64_t width, const float* __restrict x, const float* __restrict gamma,
                                    const float* __restrict beta, float* __restrict y, float* mean, float* rstd) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t n = 0; n < width; ++n) sum += x[n];
  const float average = sum / static_cast<float>(width);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t n = 0; n < width; ++n) squares += (x[n] - average) * (x[n] - average);
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + kLayerNormEpsilon);
  for (int64_t n = 0; n < width; ++n) y[n] = (x[n] - average) * inverse * gamma[n] + beta[n];
  *mean = average;
  *rstd = inverse;
}

// Adds the row's share to dgamma and dbeta [width].
PORTOLAN_CPU_CLONES void BackwardRow(int64_t width, const float* __restrict x, const float* __restrict gamma,
                                     float mean, float rstd, const float* dy, float* dx, float* __restrict dgamma,
                                     float* __restrict dbeta) {
  float sum_g = 0, sum_gh = 0;
#pragma omp simd reduction(+ : sum_g, sum_gh)
  for (int64_t n = 0; n < width; ++n) {
    const float h = (x[n] - mean) * rstd;
    const float g = dy[n] * gamma[n];
    sum_g += g;
    sum_gh += g * h;
  }
  const float mean_g = sum_g / static_cast<float>(width), mean_gh = sum_gh / static_cast<float>(width);
  for (int64_t n = 0; n < width; ++n) {
    const float h = (x[n] - mean) * rstd;
    dgamma[n] += dy[n] * h;
    dbeta[n] += dy[n];
    dx[n] = rstd * (dy[n] * gamma[n] - mean_g - h * mean_gh);
  }
}

PORTOLAN_CPU_CLONES void AddTo(int64_t width, const float* __restrict from, float* __restrict to) {
  for (int64_t n = 0; n < width; ++n) to[n] += from[n];
}

}  // namespace

void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) ForwardRow(width, x + r * width, gamma, beta, y + r * width, mean + r, rstd + r);
}

void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta) {
  const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  std::vector<float> sums(static_cast<size_t>(2 * blocks * width));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    float* gamma_sum = sums.data() + 2 * block * width;
    for (int64_t r = block * kRowsPerBlock; r < std::min((block + 1) * kRowsPerBlock, rows); ++r) {
      BackwardRow(width, x + r * width, gamma, mean[r], rstd[r], dy + r * width, dx + r * width, gamma_sum,
                  gamma_sum + width);
    }
  }
  std::fill_n(dgamma, width, 0.0f);
  std::fill_n(dbeta, width, 0.0f);
  for (int64_t block = 0; block < blocks; ++block) {
    AddTo(width, sums.data() + 2 * block * width, dgamma);
    AddTo(width, sums.data() + (2 * block + 1) * width, dbeta);
  }
}

}  // namespace portolan::kernels::cpu
