#include <omp.h>

#include <algorithm>

#include "base/cpu_clones.h"
#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::cpu {
namespace {

// Lookups whose rows are asked for ahead of their use: 16 rows of 256 B in flight are more than the latency of memory
// (about 100 ns) times what one core can draw (10 to 20 GB/s).
constexpr int64_t kPrefetchAhead = 16;
constexpr int64_t kCacheLine = 64;

struct Bags {
  const char* rows;
  int64_t row_bytes;
  int32_t dim;
  const int64_t* ids;
  const float* weights;    // may be null
  const int64_t* offsets;  // of this feature
  int64_t begin, end;      // bags
  BagPooling pooling;
  float* output;
  int64_t stride;
};

PORTOLAN_CPU_INLINE void Prefetch(const char* row, int64_t row_bytes) {
  for (int64_t byte = 0; byte < row_bytes; byte += kCacheLine) __builtin_prefetch(row + byte);
}

template <RowFormat kFormat>
PORTOLAN_CPU_INLINE float Value(const char* row, int32_t d) {
  if constexpr (kFormat == RowFormat::kFp32) return reinterpret_cast<const float*>(row)[d];
  if constexpr (kFormat == RowFormat::kFp16) return HalfToFloat(reinterpret_cast<const uint16_t*>(row)[d]);
  if constexpr (kFormat == RowFormat::kBf16) return Bf16ToFloat(reinterpret_cast<const uint16_t*>(row)[d]);
  return static_cast<float>(reinterpret_cast<const uint8_t*>(row)[8 + d]);
}

// out = factor * row, or out += factor * row. kInt8: scale * byte + bias, both times the factor.
template <RowFormat kFormat, bool kFirst>
PORTOLAN_CPU_INLINE void AddRow(const char* row, int32_t dim, float factor, float* __restrict out) {
  float scale = factor, bias = 0;
  if constexpr (kFormat == RowFormat::kInt8) {
    scale = factor * reinterpret_cast<const float*>(row)[0];
    bias = factor * reinterpret_cast<const float*>(row)[1];
  }
  for (int32_t d = 0; d < dim; ++d) {
    const float value = scale * Value<kFormat>(row, d) + bias;
    out[d] = kFirst ? value : out[d] + value;
  }
}

template <RowFormat kFormat>
PORTOLAN_CPU_INLINE void ForwardBags(const Bags& bags) {
  const int64_t first = bags.offsets[0];
  const int64_t last = bags.offsets[bags.end];
  for (int64_t i = bags.offsets[bags.begin]; i < std::min(last, bags.offsets[bags.begin] + kPrefetchAhead); ++i) {
    Prefetch(bags.rows + bags.ids[i] * bags.row_bytes, bags.row_bytes);
  }
  for (int64_t b = bags.begin; b < bags.end; ++b) {
    const int64_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    const float share = bags.pooling == BagPooling::kMean ? 1.0f / static_cast<float>(end - begin) : 1.0f;
    float* out = bags.output + b * bags.stride;
    if (begin == end && bags.pooling != BagPooling::kNone) std::fill_n(out, bags.dim, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetchAhead < last) {
        Prefetch(bags.rows + bags.ids[i + kPrefetchAhead] * bags.row_bytes, bags.row_bytes);
      }
      const char* row = bags.rows + bags.ids[i] * bags.row_bytes;
      const float factor = bags.weights != nullptr ? share * bags.weights[i] : share;
      if (bags.pooling == BagPooling::kNone) {
        AddRow<kFormat, true>(row, bags.dim, factor, bags.output + (i - first) * bags.stride);
      } else if (i == begin) {
        AddRow<kFormat, true>(row, bags.dim, factor, out);
      } else {
        AddRow<kFormat, false>(row, bags.dim, factor, out);
      }
    }
  }
}

PORTOLAN_CPU_CLONES void ForwardFp32(const Bags& bags) { ForwardBags<RowFormat::kFp32>(bags); }
PORTOLAN_CPU_CLONES void ForwardFp16(const Bags& bags) { ForwardBags<RowFormat::kFp16>(bags); }
PORTOLAN_CPU_CLONES void ForwardBf16(const Bags& bags) { ForwardBags<RowFormat::kBf16>(bags); }
PORTOLAN_CPU_CLONES void ForwardInt8(const Bags& bags) { ForwardBags<RowFormat::kInt8>(bags); }

template <RowFormat kFormat>
float RowDot(const char* row, int32_t dim, const float* gradient) {
  float scale = 1, bias = 0;
  if constexpr (kFormat == RowFormat::kInt8) {
    scale = reinterpret_cast<const float*>(row)[0];
    bias = reinterpret_cast<const float*>(row)[1];
  }
  float dot = 0;
  for (int32_t d = 0; d < dim; ++d) dot += (scale * Value<kFormat>(row, d) + bias) * gradient[d];
  return dot;
}

float Dot(RowFormat format, const char* row, int32_t dim, const float* gradient) {
  switch (format) {
    case RowFormat::kFp32:
      return RowDot<RowFormat::kFp32>(row, dim, gradient);
    case RowFormat::kFp16:
      return RowDot<RowFormat::kFp16>(row, dim, gradient);
    case RowFormat::kBf16:
      return RowDot<RowFormat::kBf16>(row, dim, gradient);
    case RowFormat::kInt8:
      return RowDot<RowFormat::kInt8>(row, dim, gradient);
  }
  return 0;
}

void Forward(RowFormat format, const Bags& bags) {
  switch (format) {
    case RowFormat::kFp32:
      return ForwardFp32(bags);
    case RowFormat::kFp16:
      return ForwardFp16(bags);
    case RowFormat::kBf16:
      return ForwardBf16(bags);
    case RowFormat::kInt8:
      return ForwardInt8(bags);
  }
}

}  // namespace

void EmbeddingForward(const EmbeddingBags& bags) {
  // Blocks of bags of one feature, dealt as threads become free: features differ in lookups. Several a thread, or
  // threads wait for the one with the last block; every bag is pooled alone, so blocks change no bit.
  constexpr int64_t kMaxBags = 256, kMinBags = 32, kBlocksPerThread = 4;
  const int64_t share = bags.batch * bags.feature_count / (kBlocksPerThread * omp_get_max_threads());
  const int64_t bags_per_task = std::clamp(share, kMinBags, kMaxBags);
  const int64_t blocks = (bags.batch + bags_per_task - 1) / bags_per_task;
#pragma omp parallel for schedule(dynamic) if (blocks * bags.feature_count > 1)
  for (int64_t task = 0; task < blocks * bags.feature_count; ++task) {
    const EmbeddingFeature& feature = bags.features[task / blocks];
    const EmbeddingTable& table = bags.tables[feature.table];
    const int64_t begin = task % blocks * bags_per_task;
    Forward(table.format,
            {static_cast<const char*>(table.rows), RowBytes(table.format, table.dim), table.dim, bags.ids, bags.weights,
             bags.offsets + task / blocks * bags.batch, begin, std::min(begin + bags_per_task, bags.batch),
             feature.pooling, feature.output, feature.output_stride});
  }
}

void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient) {
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t bag = 0; bag < bags.feature_count * bags.batch; ++bag) {
    const EmbeddingFeature& feature = bags.features[bag / bags.batch];
    const EmbeddingTable& table = bags.tables[feature.table];
    const int64_t first = bags.offsets[bag / bags.batch * bags.batch];
    const int64_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    const float share = feature.pooling == BagPooling::kMean ? 1.0f / static_cast<float>(end - begin) : 1.0f;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = feature.pooling == BagPooling::kNone ? i - first : bag % bags.batch;
      const float* gradient = feature.output + place * feature.output_stride;
      const char* row = static_cast<const char*>(table.rows) + bags.ids[i] * RowBytes(table.format, table.dim);
      weight_gradient[i] = share * Dot(table.format, row, table.dim, gradient);
    }
  }
}

}  // namespace portolan::kernels::cpu
