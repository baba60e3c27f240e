#include <algorithm>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/interaction/interaction.h"

namespace portolan::kernels::cpu {
namespace {

constexpr int64_t kLanes = 16;
// Lowered to what the processor has; sums have the same order everywhere. The second is named where memory is read, for
// `auto` would forget its alignment.
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef float LanesInMemory __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

PORTOLAN_CPU_INLINE void AddHalves(const Lanes& a, const Lanes& b, Lanes* sums) {  // of every 4 lanes: a0+a2 b0+b2 ...
  *sums = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
          __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
PORTOLAN_CPU_INLINE void AddPairs(const Lanes& a, const Lanes& b, Lanes* sums) {  // of every 4 lanes: a0+a2 a1+a3 b0+b2
  *sums = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
          __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
PORTOLAN_CPU_INLINE void AddEights(const Lanes& a, const Lanes& b, Lanes* sums) {  // upper and lower halves
  *sums = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
          __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
PORTOLAN_CPU_INLINE void AddFours(const Lanes& a, const Lanes& b, Lanes* sums) {  // of every 8 lanes, 4 and 4
  *sums = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
          __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

// sums[i] = the sum of the lanes of terms[i], for 16 of them at once: 45 operations in place of 16 reductions of 8.
PORTOLAN_CPU_INLINE void SumLanes(const Lanes* terms, Lanes* sums) {
  Lanes fours[4];
  for (int q = 0; q < 4; ++q) {
    Lanes low, high;
    AddHalves(terms[4 * q], terms[4 * q + 1], &low);
    AddHalves(terms[4 * q + 2], terms[4 * q + 3], &high);
    AddPairs(low, high, &fours[q]);
  }
  Lanes low, high;
  AddEights(fours[0], fours[1], &low);
  AddEights(fours[2], fours[3], &high);
  AddFours(low, high, sums);
}

// Places of the two vectors of every pair, in the order of the output, in whole blocks of 16 (the rest repeats 0, 0).
struct Pairs {
  Pairs(int64_t features, int64_t stride) : count(features * (features - 1) / 2) {
    for (int64_t i = 0; i < features; ++i) {
      for (int64_t j = i + 1; j < features; ++j) {
        first.push_back(i * stride);
        second.push_back(j * stride);
      }
    }
    const int64_t whole = (count + kLanes - 1) / kLanes * kLanes;
    first.resize(static_cast<size_t>(whole));
    second.resize(static_cast<size_t>(whole));
  }
  int64_t count;
  std::vector<int64_t> first, second;
};

// `padded`: [features, dim rounded up to whole lanes], zero where dim ends; used where dim is not whole lanes.
PORTOLAN_CPU_CLONES void ForwardSamples(const DotInteractionShape& shape, int64_t begin, int64_t end, const float* x,
                                        float* out, const Pairs& pairs, float* padded) {
  const int64_t features = shape.features, dim = shape.dim;
  const int64_t chunks = (dim + kLanes - 1) / kLanes;
  const int64_t *first = pairs.first.data(), *second = pairs.second.data();
  for (int64_t b = begin; b < end; ++b) {
    const float* sample = x + b * shape.x_stride;
    float* row = out + b * shape.out_stride;
    for (int64_t d = 0; d < dim; ++d) row[d] = sample[d];
    if (padded != nullptr) {
      for (int64_t f = 0; f < features; ++f) {
        for (int64_t d = 0; d < dim; ++d) padded[f * chunks * kLanes + d] = sample[f * dim + d];
      }
      sample = padded;
    }
    row += dim;
    for (int64_t block = 0; block < pairs.count; block += kLanes) {
      Lanes terms[kLanes];
      for (int64_t p = 0; p < kLanes; ++p) {
        const LanesInMemory* xi = reinterpret_cast<const LanesInMemory*>(sample + first[block + p]);
        const LanesInMemory* xj = reinterpret_cast<const LanesInMemory*>(sample + second[block + p]);
        Lanes term = xi[0] * xj[0];
        for (int64_t c = 1; c < chunks; ++c) term += xi[c] * xj[c];
        terms[p] = term;
      }
      Lanes sums;
      SumLanes(terms, &sums);
      if (block + kLanes <= pairs.count) {
        *reinterpret_cast<LanesInMemory*>(row + block) = sums;
      } else {
        for (int64_t p = 0; block + p < pairs.count; ++p) row[block + p] = sums[p];
      }
    }
    for (int64_t column = pairs.count; column < shape.out_width - dim; ++column) row[column] = 0;
  }
}

constexpr int64_t kRowsAtOnce = 4;  // of the gradient: a vector of x is read once for all of them

// dx = W x with the symmetric W [features, features] of dout's products and zeros on its diagonal. `weights`: room for
// it, [features rounded up to kRowsAtOnce, features], zero.
PORTOLAN_CPU_CLONES void BackwardSamples(const DotInteractionShape& shape, int64_t begin, int64_t end, const float* x,
                                         const float* dout, float* dx, float* weights) {
  const int64_t features = shape.features, dim = shape.dim, whole = dim / kLanes * kLanes;
  for (int64_t b = begin; b < end; ++b) {
    const float* sample = x + b * shape.x_stride;
    const float* row = dout + b * shape.out_stride;
    float* gradient = dx + b * shape.x_stride;
    int64_t column = dim;
    for (int64_t i = 0; i < features; ++i) {
      for (int64_t j = i + 1; j < features; ++j, ++column) {
        weights[i * features + j] = weights[j * features + i] = row[column];
      }
    }
    for (int64_t i = 0; i < features; i += kRowsAtOnce) {
      const float* of_rows = weights + i * features;
      const int64_t rows = std::min(kRowsAtOnce, features - i);
      for (int64_t d = 0; d < whole; d += kLanes) {
        Lanes sums[kRowsAtOnce] = {};
        if (i == 0) sums[0] = *reinterpret_cast<const LanesInMemory*>(row + d);
        for (int64_t j = 0; j < features; ++j) {
          const Lanes xj = *reinterpret_cast<const LanesInMemory*>(sample + j * dim + d);
          sums[0] += of_rows[j] * xj;
          sums[1] += of_rows[features + j] * xj;
          sums[2] += of_rows[2 * features + j] * xj;
          sums[3] += of_rows[3 * features + j] * xj;
        }
        for (int64_t r = 0; r < rows; ++r) {
          *reinterpret_cast<LanesInMemory*>(gradient + (i + r) * dim + d) = sums[r];
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t d = whole; d < dim; ++d) {
          float sum = i + r == 0 ? row[d] : 0;
          for (int64_t j = 0; j < features; ++j) sum += of_rows[r * features + j] * sample[j * dim + d];
          gradient[(i + r) * dim + d] = sum;
        }
      }
    }
  }
}

constexpr int64_t kSamplesPerTask = 32;

}  // namespace

void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out) {
  const int64_t padded_dim = (shape.dim + kLanes - 1) / kLanes * kLanes;
  const Pairs pairs(shape.features, padded_dim);
#pragma omp parallel
  {
    std::vector<float> scratch(padded_dim != shape.dim ? static_cast<size_t>(shape.features * padded_dim) : 0);
#pragma omp for schedule(static)
    for (int64_t begin = 0; begin < shape.batch; begin += kSamplesPerTask) {
      ForwardSamples(shape, begin, std::min(begin + kSamplesPerTask, shape.batch), x, out, pairs,
                     padded_dim != shape.dim ? scratch.data() : nullptr);
    }
  }
}

void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx) {
  const int64_t rows = (shape.features + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce;
#pragma omp parallel
  {
    std::vector<float> weights(static_cast<size_t>(rows * shape.features));
#pragma omp for schedule(static)
    for (int64_t begin = 0; begin < shape.batch; begin += kSamplesPerTask) {
      BackwardSamples(shape, begin, std::min(begin + kSamplesPerTask, shape.batch), x, dout, dx, weights.data());
    }
  }
}

}  // namespace portolan::kernels::cpu
