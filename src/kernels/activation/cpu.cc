#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/activation/activation.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kRowsPerBlock = 64;

PORTOLAN_CPU_INLINE float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

PORTOLAN_CPU_CLONES void AddBias(int64_t width, const float* __restrict bias, float* __restrict x) {
  for (int64_t n = 0; n < width; ++n) x[n] += bias[n];
}

PORTOLAN_CPU_CLONES void ForwardRow(ActivationKind kind, int64_t width, const float* x, float* y) {
  switch (kind) {
    case ActivationKind::kNone:
      if (x != y) std::copy_n(x, width, y);
      return;
    case ActivationKind::kRelu:
      for (int64_t n = 0; n < width; ++n) y[n] = x[n] > 0 ? x[n] : 0;
      return;
    case ActivationKind::kSigmoid:
      for (int64_t n = 0; n < width; ++n) y[n] = Sigmoid(x[n]);
      return;
    case ActivationKind::kSilu:
      for (int64_t n = 0; n < width; ++n) y[n] = x[n] * Sigmoid(x[n]);
      return;
    case ActivationKind::kGelu:
      for (int64_t n = 0; n < width; ++n) y[n] = x[n] * 0.5f * (1.0f + std::erf(x[n] * 0.70710678f));
      return;
  }
}

PORTOLAN_CPU_CLONES void BackwardRow(ActivationKind kind, int64_t width, const float* x, const float* y,
                                     const float* dy, float* dx) {
  switch (kind) {
    case ActivationKind::kNone:
      if (dx != dy) std::copy_n(dy, width, dx);
      return;
    case ActivationKind::kRelu:
      for (int64_t n = 0; n < width; ++n) dx[n] = y[n] > 0 ? dy[n] : 0;
      return;
    case ActivationKind::kSigmoid:
      for (int64_t n = 0; n < width; ++n) dx[n] = dy[n] * y[n] * (1.0f - y[n]);
      return;
    case ActivationKind::kSilu:
      for (int64_t n = 0; n < width; ++n) {
        const float sigmoid = Sigmoid(x[n]);
        dx[n] = dy[n] * sigmoid * (1.0f + x[n] * (1.0f - sigmoid));
      }
      return;
    case ActivationKind::kGelu:
      for (int64_t n = 0; n < width; ++n) {
        const float density = 0.39894228f * std::exp(-0.5f * x[n] * x[n]);  // 1 / sqrt(2 pi)
        dx[n] = dy[n] * (0.5f * (1.0f + std::erf(x[n] * 0.70710678f)) + x[n] * density);
      }
      return;
  }
}

PORTOLAN_CPU_CLONES void AddTo(int64_t width, const float* __restrict from, float* __restrict to) {
  for (int64_t n = 0; n < width; ++n) to[n] += from[n];
}

}  // namespace

void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    if (bias != nullptr) AddBias(width, bias, x + r * x_stride);
    ForwardRow(kind, width, x + r * x_stride, y + r * y_stride);
  }
}

void BroadcastBias(int64_t rows, int64_t width, const float* bias, int64_t y_stride, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) std::copy_n(bias, width, y + r * y_stride);
}

void ActivationForward(ActivationKind kind, int64_t rows, int64_t width, const float* x, int64_t y_stride, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) ForwardRow(kind, width, x + r * width, y + r * y_stride);
}

void ActivationBackward(ActivationKind kind, int64_t rows, int64_t width, const float* x, int64_t y_stride,
                        const float* y, int64_t dy_stride, const float* dy, float* dx) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    BackwardRow(kind, width, x != nullptr ? x + r * width : nullptr, y != nullptr ? y + r * y_stride : nullptr,
                dy + r * dy_stride, dx + r * width);
  }
}

void ColumnSums(int64_t rows, int64_t width, int64_t stride, const float* x, float* sums) {
  const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  std::vector<float> parts(static_cast<size_t>(blocks * width));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t r = block * kRowsPerBlock; r < std::min((block + 1) * kRowsPerBlock, rows); ++r) {
      AddTo(width, x + r * stride, parts.data() + block * width);
    }
  }
  std::fill_n(sums, width, 0.0f);
  for (int64_t block = 0; block < blocks; ++block) AddTo(width, parts.data() + block * width, sums);
}

void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias) {
  const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  std::vector<float> sums(dbias != nullptr ? static_cast<size_t>(blocks * width) : 0);
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t r = block * kRowsPerBlock; r < std::min((block + 1) * kRowsPerBlock, rows); ++r) {
      BackwardRow(kind, width, x != nullptr ? x + r * x_stride : nullptr, y != nullptr ? y + r * y_stride : nullptr,
                  dy + r * dy_stride, dx + r * dx_stride);
      if (dbias != nullptr) AddTo(width, dx + r * dx_stride, sums.data() + block * width);
    }
  }
  if (dbias == nullptr) return;
  std::fill_n(dbias, width, 0.0f);
  for (int64_t block = 0; block < blocks; ++block) AddTo(width, sums.data() + block * width, dbias);
}

}  // namespace portolan::kernels::cpu
