#include "kernels/embedding/embedding.h"
#include "kernels/embedding/gpu_rows.h"
#include "kernels/gpu_kernels.h"
#include "kernels/visit_columns.h"

// The passes that change no row: forward, and the gradient of the lookups' weights.
namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int kPoolThreads = 256;
constexpr int kUnrolledRows = 4;             // rows on their way at once, for each group of lanes
constexpr int64_t kBagsPerBlock = 32;        // aimed at, so that a block lives long enough to be worth its start
constexpr int64_t kBlocksPerFeature = 4096;  // at most; a block then takes several turns

struct Feature {
  EmbeddingTable table;
  EmbeddingFeature feature;
  int64_t row_bytes;
  const int64_t* offsets;  // [batch + 1]
  int64_t first_lookup;
  int64_t outputs;
};

PORTOLAN_DEVICE Feature FeatureOf(const EmbeddingBags& bags, int64_t f) {
  Feature result;
  result.feature = bags.features[f];
  result.table = bags.tables[result.feature.table];
  result.row_bytes = RowBytes(result.table.format, result.table.dim);
  result.offsets = bags.offsets + f * bags.batch;
  result.first_lookup = result.offsets[0];
  const bool pools = result.feature.pooling != BagPooling::kNone;
  result.outputs = pools ? bags.batch : result.offsets[bags.batch] - result.first_lookup;
  return result;
}

// Runs a kernel on a feature with the format of its rows, and the columns that a lane takes at once, known.
template <typename Kernel>
PORTOLAN_DEVICE void RunInFormat(const Kernel& kernel, const Feature& feature) {
  switch (feature.table.format) {
    case RowFormat::kFp32:
      return kernel.template Run<RowFormat::kFp32, 4>(feature);
    case RowFormat::kFp16:
      return kernel.template Run<RowFormat::kFp16, 8>(feature);
    case RowFormat::kBf16:
      return kernel.template Run<RowFormat::kBf16, 8>(feature);
    case RowFormat::kInt8:
      return kernel.template Run<RowFormat::kInt8, 8>(feature);
  }
}

// A block works for one feature. A group of lanes takes a bag: as many lanes as the row has vectors of 16 bytes (8 for
// int8), so that a row of 64 bytes keeps four lanes busy and a wave reads many rows at once. Lanes never exchange
// anything: each sums its own columns, in the order of the lookups.
struct PoolBags {
  static constexpr const char* kName = "embedding_forward";
  static constexpr int kThreads = kPoolThreads;
  using Shared = NoShared;
  EmbeddingBags bags;
  int64_t blocks_per_feature;

  PORTOLAN_DEVICE void operator()(Shared&) const {
    RunInFormat(*this, FeatureOf(bags, BlockIndex() / blocks_per_feature));
  }

  template <RowFormat kFormat, int kColumns>
  PORTOLAN_DEVICE void Run(const Feature& f) const {
    const int dim = f.table.dim;
    int lanes = 1;
    while (lanes < 64 && lanes * kColumns < dim) lanes *= 2;
    const int lane = ThreadIndex() % lanes;
    const int64_t groups = kThreads / lanes;
    const char* rows = static_cast<const char*>(f.table.rows);
    const bool rows_aligned = RowsAreAligned(rows, f.row_bytes, VectorBytes<kFormat, kColumns>());
    const bool out_aligned = RowsAreAligned(f.feature.output, f.feature.output_stride * 4, 16);

    const int64_t first = BlockIndex() % blocks_per_feature * groups + ThreadIndex() / lanes;
    for (int64_t o = first; o < f.outputs; o += blocks_per_feature * groups) {
      const bool pools = f.feature.pooling != BagPooling::kNone;
      const int64_t begin = pools ? f.offsets[o] : f.first_lookup + o;
      const int64_t end = pools ? f.offsets[o + 1] : begin + 1;
      const float share =
          f.feature.pooling == BagPooling::kMean && end > begin ? 1.0f / static_cast<float>(end - begin) : 1.0f;
      for (int column = lane * kColumns; column < dim; column += lanes * kColumns) {
        Columns<kColumns> sum = {};
        int64_t i = begin;
        for (; i + kUnrolledRows <= end; i += kUnrolledRows) {
          Columns<kColumns> row[kUnrolledRows];
          for (int k = 0; k < kUnrolledRows; ++k) {
            row[k] = LoadColumns<kFormat, kColumns>(rows + bags.ids[i + k] * f.row_bytes, column, dim, rows_aligned);
          }
          for (int k = 0; k < kUnrolledRows; ++k) Add(row[k], Weight(i + k) * share, &sum);
        }
        for (; i < end; ++i) {
          Add(LoadColumns<kFormat, kColumns>(rows + bags.ids[i] * f.row_bytes, column, dim, rows_aligned),
              Weight(i) * share, &sum);
        }
        StoreFloats(sum, f.feature.output + o * f.feature.output_stride, column, dim, out_aligned);
      }
    }
  }

  PORTOLAN_DEVICE float Weight(int64_t lookup) const { return bags.weights != nullptr ? bags.weights[lookup] : 1.0f; }

  template <int kColumns>
  PORTOLAN_DEVICE static void Add(const Columns<kColumns>& row, float factor, Columns<kColumns>* sum) {
    for (int k = 0; k < kColumns; ++k) sum->value[k] += factor * row.value[k];
  }
};

// Sixteen lanes a bag; each lookup is a dot product of its row with the gradient of the bag.
struct DotWeights {
  static constexpr const char* kName = "embedding_weight_gradient";
  static constexpr int kThreads = kPoolThreads;
  static constexpr int kLanes = 16;
  using Shared = NoShared;
  EmbeddingBags bags;
  int64_t blocks_per_feature;
  float* weight_gradient;  // [lookups]

  PORTOLAN_DEVICE void operator()(Shared&) const {
    RunInFormat(*this, FeatureOf(bags, BlockIndex() / blocks_per_feature));
  }

  template <RowFormat kFormat, int kColumns>
  PORTOLAN_DEVICE void Run(const Feature& f) const {
    const int dim = f.table.dim;
    const int lane = ThreadIndex() % kLanes;
    const int64_t groups = kThreads / kLanes;
    const char* rows = static_cast<const char*>(f.table.rows);
    const bool rows_aligned = RowsAreAligned(rows, f.row_bytes, VectorBytes<kFormat, kColumns>());
    const bool out_aligned = RowsAreAligned(f.feature.output, f.feature.output_stride * 4, 16);
    const int64_t first = BlockIndex() % blocks_per_feature * groups + ThreadIndex() / kLanes;
    for (int64_t o = first; o < f.outputs; o += blocks_per_feature * groups) {
      const bool pools = f.feature.pooling != BagPooling::kNone;
      const int64_t begin = pools ? f.offsets[o] : f.first_lookup + o;
      const int64_t end = pools ? f.offsets[o + 1] : begin + 1;
      const float share =
          f.feature.pooling == BagPooling::kMean && end > begin ? 1.0f / static_cast<float>(end - begin) : 1.0f;
      const float* gradient = f.feature.output + o * f.feature.output_stride;
      for (int64_t i = begin; i < end; ++i) {
        float dot = 0;
        for (int column = lane * kColumns; column < dim; column += kLanes * kColumns) {
          const auto row = LoadColumns<kFormat, kColumns>(rows + bags.ids[i] * f.row_bytes, column, dim, rows_aligned);
          const auto slope = LoadFloats<kColumns>(gradient, column, dim, out_aligned);
          for (int k = 0; k < kColumns; ++k) dot += row.value[k] * slope.value[k];
        }
        dot = WaveSum<kLanes>(dot);
        if (lane == 0) weight_gradient[i] = dot * share;
      }
    }
  }
};

int64_t BlocksPerFeature(const EmbeddingBags& bags) {
  const int64_t blocks = CeilDivide(bags.batch, kBagsPerBlock);
  return blocks < 1 ? 1 : blocks < kBlocksPerFeature ? blocks : kBlocksPerFeature;
}

}  // namespace

void EmbeddingForward(const EmbeddingBags& bags, device::Stream stream) {
  const int64_t blocks = BlocksPerFeature(bags);
  Launch(stream, bags.feature_count * blocks, PoolBags{bags, blocks});
}

void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient, device::Stream stream) {
  const int64_t blocks = BlocksPerFeature(bags);
  Launch(stream, bags.feature_count * blocks, DotWeights{bags, blocks, weight_gradient});
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
