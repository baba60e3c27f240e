#include <algorithm>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/interaction/interaction.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kSamplesPerTask = 32;

// out [m, n] = a b: a [m, k] with `a_row` and `a_column` numbers between elements, b [k, n].
PORTOLAN_CPU_CLONES void Product(int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_column,
                                 const float* __restrict a, const float* __restrict b, float* __restrict out) {
  for (int64_t i = 0; i < m; ++i) {
    float* __restrict row = out + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0;
    for (int64_t l = 0; l < k; ++l) {
      const float value = a[i * a_row + l * a_column];
      for (int64_t j = 0; j < n; ++j) row[j] += value * b[l * n + j];
    }
  }
}

void TransposeTo(int64_t rows, int64_t columns, const float* __restrict from, float* __restrict to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }
}

}  // namespace

void BatchedProduct(BatchedLayout layout, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t a_stride,
                    const float* a, int64_t b_stride, const float* b, int64_t out_stride, float* out) {
  const bool left = layout == BatchedLayout::kLeftTransposed, right = layout == BatchedLayout::kRightTransposed;
#pragma omp parallel
  {
    std::vector<float> transposed(right ? static_cast<size_t>(k * n) : 0);
#pragma omp for schedule(static, kSamplesPerTask)
    for (int64_t s = 0; s < batch; ++s) {
      const float* factor = b + s * b_stride;
      if (right) {
        TransposeTo(n, k, factor, transposed.data());
        factor = transposed.data();
      }
      Product(m, n, k, left ? 1 : k, left ? m : 1, a + s * a_stride, factor, out + s * out_stride);
    }
  }
}

void PickPairs(const DotInteractionShape& shape, const float* x, const float* products, float* out) {
#pragma omp parallel for schedule(static)
  for (int64_t s = 0; s < shape.batch; ++s) {
    float* to = std::copy_n(x + s * shape.x_stride, shape.dim, out + s * shape.out_stride);
    const float* square = products + s * shape.features * shape.features;
    for (int64_t i = 0; i < shape.features; ++i) {
      to = std::copy_n(square + i * shape.features + i + 1, shape.features - i - 1, to);
    }
    std::fill(to, out + s * shape.out_stride + shape.out_width, 0.0f);
  }
}

void SpreadPairs(const DotInteractionShape& shape, const float* dout, float* dproducts) {
#pragma omp parallel for schedule(static)
  for (int64_t s = 0; s < shape.batch; ++s) {
    const float* from = dout + s * shape.out_stride + shape.dim;
    float* square = dproducts + s * shape.features * shape.features;
    for (int64_t i = 0; i < shape.features; ++i) {
      std::fill_n(square + i * shape.features, i + 1, 0.0f);
      std::copy_n(from, shape.features - i - 1, square + i * shape.features + i + 1);
      from += shape.features - i - 1;
    }
  }
}

void AddFirstVector(const DotInteractionShape& shape, const float* dout, float* dx) {
#pragma omp parallel for schedule(static)
  for (int64_t s = 0; s < shape.batch; ++s) {
    const float* from = dout + s * shape.out_stride;
    float* to = dx + s * shape.features * shape.dim;
    for (int64_t d = 0; d < shape.dim; ++d) to[d] += from[d];
  }
}

}  // namespace portolan::kernels::cpu
