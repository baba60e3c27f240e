#include <algorithm>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/activation/activation.h"
#include "kernels/vector_math.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kRowsPerBlock = 64;

PORTOLAN_CPU_INLINE float Value(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
    case ActivationKind::kSigmoid:
      return VectorSigmoid(x);
    case ActivationKind::kSilu:
      return x * VectorSigmoid(x);
    case ActivationKind::kGelu:
      return x * 0.5f * (1.0f + VectorErf(x * 0.70710678f, VectorExp(-0.5f * x * x)));
  }
  return x;
}

// x: of kSilu and kGelu; y: of kRelu and kSigmoid.
PORTOLAN_CPU_INLINE float Slope(ActivationKind kind, float x, float y) {
  switch (kind) {
    case ActivationKind::kNone:
      return 1;
    case ActivationKind::kRelu:
      return y > 0 ? 1.0f : 0.0f;
    case ActivationKind::kSigmoid:
      return y * (1.0f - y);
    case ActivationKind::kSilu: {
      const float sigmoid = VectorSigmoid(x);
      return sigmoid * (1.0f + x * (1.0f - sigmoid));
    }
    case ActivationKind::kGelu: {
      const float gauss = VectorExp(-0.5f * x * x);
      // 1 / sqrt(2 pi) e^(-x^2 / 2)
      return 0.5f * (1.0f + VectorErf(x * 0.70710678f, gauss)) + x * (0.39894228f * gauss);
    }
  }
  return 1;
}

// In place where y = x, which is what the pragma says is no hazard.
template <ActivationKind kKind>
PORTOLAN_CPU_INLINE void ForwardLoop(int64_t width, const float* x, float* y) {
#pragma omp simd
  for (int64_t n = 0; n < width; ++n) y[n] = Value(kKind, x[n]);
}

template <ActivationKind kKind>
PORTOLAN_CPU_INLINE void BackwardLoop(int64_t width, const float* x, const float* y, const float* dy, float* dx) {
  constexpr bool kNeedsX = kKind == ActivationKind::kSilu || kKind == ActivationKind::kGelu;
  constexpr bool kNeedsY = kKind == ActivationKind::kRelu || kKind == ActivationKind::kSigmoid;
#pragma omp simd
  for (int64_t n = 0; n < width; ++n) dx[n] = dy[n] * Slope(kKind, kNeedsX ? x[n] : 0.0f, kNeedsY ? y[n] : 0.0f);
}

PORTOLAN_CPU_CLONES void AddBias(int64_t width, const float* __restrict bias, float* __restrict x) {
  for (int64_t n = 0; n < width; ++n) x[n] += bias[n];
}

PORTOLAN_CPU_CLONES void ForwardRow(ActivationKind kind, int64_t width, const float* x, float* y) {
  switch (kind) {
    case ActivationKind::kNone:
      if (x != y) std::copy_n(x, width, y);
      return;
    case ActivationKind::kRelu:
      return ForwardLoop<ActivationKind::kRelu>(width, x, y);
    case ActivationKind::kSigmoid:
      return ForwardLoop<ActivationKind::kSigmoid>(width, x, y);
    case ActivationKind::kSilu:
      return ForwardLoop<ActivationKind::kSilu>(width, x, y);
    case ActivationKind::kGelu:
      return ForwardLoop<ActivationKind::kGelu>(width, x, y);
  }
}

PORTOLAN_CPU_CLONES void BackwardRow(ActivationKind kind, int64_t width, const float* x, const float* y,
                                     const float* dy, float* dx) {
  switch (kind) {
    case ActivationKind::kNone:
      if (dx != dy) std::copy_n(dy, width, dx);
      return;
    case ActivationKind::kRelu:
      return BackwardLoop<ActivationKind::kRelu>(width, x, y, dy, dx);
    case ActivationKind::kSigmoid:
      return BackwardLoop<ActivationKind::kSigmoid>(width, x, y, dy, dx);
    case ActivationKind::kSilu:
      return BackwardLoop<ActivationKind::kSilu>(width, x, y, dy, dx);
    case ActivationKind::kGelu:
      return BackwardLoop<ActivationKind::kGelu>(width, x, y, dy, dx);
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
