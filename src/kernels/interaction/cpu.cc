#include <algorithm>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/interaction/interaction.h"

namespace portolan::kernels::cpu {
namespace {

// Vectors are transposed to [dim, features] so that all products of one vector with the later ones are contiguous.
PORTOLAN_CPU_CLONES void ForwardSamples(const DotInteractionShape& shape, int64_t begin, int64_t end, const float* x,
                                        float* out, float* __restrict scratch) {
  const int64_t features = shape.features, dim = shape.dim;
  float* __restrict transposed = scratch;             // [dim, features]
  float* __restrict dots = scratch + dim * features;  // [features]
  for (int64_t b = begin; b < end; ++b) {
    const float* __restrict sample = x + b * shape.x_stride;
    float* __restrict row = out + b * shape.out_stride;
    for (int64_t d = 0; d < dim; ++d) row[d] = sample[d];
    for (int64_t f = 0; f < features; ++f) {
      for (int64_t d = 0; d < dim; ++d) transposed[d * features + f] = sample[f * dim + d];
    }
    int64_t column = dim;
    for (int64_t i = 0; i + 1 < features; ++i) {
      const int64_t count = features - i - 1;
      for (int64_t j = 0; j < count; ++j) dots[j] = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const float value = sample[i * dim + d];
        const float* __restrict others = transposed + d * features + i + 1;
        for (int64_t j = 0; j < count; ++j) dots[j] += value * others[j];
      }
      for (int64_t j = 0; j < count; ++j) row[column + j] = dots[j];
      column += count;
    }
    for (; column < shape.out_width; ++column) row[column] = 0;
  }
}

PORTOLAN_CPU_CLONES void BackwardSamples(const DotInteractionShape& shape, int64_t begin, int64_t end, const float* x,
                                         const float* dout, float* dx) {
  const int64_t features = shape.features, dim = shape.dim;
  for (int64_t b = begin; b < end; ++b) {
    const float* __restrict sample = x + b * shape.x_stride;
    const float* __restrict row = dout + b * shape.out_stride;
    float* __restrict gradient = dx + b * shape.x_stride;
    for (int64_t d = 0; d < dim; ++d) gradient[d] = row[d];
    for (int64_t n = dim; n < features * dim; ++n) gradient[n] = 0;
    int64_t column = dim;
    for (int64_t i = 0; i < features; ++i) {
      const float* __restrict xi = sample + i * dim;
      float* __restrict gi = gradient + i * dim;
      for (int64_t j = i + 1; j < features; ++j, ++column) {
        const float weight = row[column];
        const float* __restrict xj = sample + j * dim;
        float* __restrict gj = gradient + j * dim;
        for (int64_t d = 0; d < dim; ++d) {
          gi[d] += weight * xj[d];
          gj[d] += weight * xi[d];
        }
      }
    }
  }
}

constexpr int64_t kSamplesPerTask = 32;

}  // namespace

void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out) {
#pragma omp parallel
  {
    std::vector<float> scratch(static_cast<size_t>(shape.features * (shape.dim + 1)));
#pragma omp for schedule(static)
    for (int64_t begin = 0; begin < shape.batch; begin += kSamplesPerTask) {
      ForwardSamples(shape, begin, std::min(begin + kSamplesPerTask, shape.batch), x, out, scratch.data());
    }
  }
}

void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx) {
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < shape.batch; begin += kSamplesPerTask) {
    BackwardSamples(shape, begin, std::min(begin + kSamplesPerTask, shape.batch), x, dout, dx);
  }
}

}  // namespace portolan::kernels::cpu
