#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/embedding/cpu_runs.h"
#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

// Sort the lookups by row, find the run of each row, sum its gradients, update it once.
namespace portolan::kernels {
namespace {

// Gradients and rows asked for ahead of their use; see kPrefetchAhead in cpu_forward.cc.
constexpr int64_t kPrefetchGradients = 8;
constexpr int64_t kPrefetchRows = 8;
// Rows whose gradients are summed before the first of them is updated. Where prefetches get lost (a virtual machine's
// address translation), what hides the latency of memory is how many rows a core can have in flight, and so how few
// instructions stand between them: summed and updated row by row, the pass takes twice as long.
constexpr int64_t kRowsPerTask = 64;

struct Gradient {
  const float* values;
  float factor;
};

PORTOLAN_CPU_INLINE Gradient GradientOf(const EmbeddingBags& bags, const Runs& runs, int64_t entry) {
  const int64_t i = runs.Lookup(entry);
  const int64_t bag = runs.space.bag[i];
  const int64_t f = bag / bags.batch;
  const EmbeddingFeature& feature = bags.features[f];
  float factor = bags.weights != nullptr ? bags.weights[i] : 1.0f;
  if (feature.pooling == BagPooling::kMean) {
    factor /= static_cast<float>(bags.offsets[bag + 1] - bags.offsets[bag]);
  }
  const int64_t place = feature.pooling == BagPooling::kNone ? i - bags.offsets[f * bags.batch] : bag - f * bags.batch;
  return {feature.output + place * feature.output_stride, factor};
}

// sum [dim] = the gradients of entries [begin, end).
PORTOLAN_CPU_CLONES void SumGradients(const EmbeddingBags& bags, const Runs& runs, int64_t begin, int64_t end,
                                      int32_t dim, float* __restrict sum) {
  for (int64_t entry = begin; entry < end; ++entry) {
    const Gradient gradient = GradientOf(bags, runs, entry);
    if (entry == begin) {
      for (int32_t d = 0; d < dim; ++d) sum[d] = gradient.factor * gradient.values[d];
    } else {
      for (int32_t d = 0; d < dim; ++d) sum[d] += gradient.factor * gradient.values[d];
    }
  }
}

// The table's row that a run updates.
struct Row {
  int64_t run = 0, row = 0;
  int32_t table = 0;
};

Row RowOf(const EmbeddingBags& bags, const Runs& runs, int64_t run) {
  const int64_t entry = runs.space.starts[run];
  const int32_t table = bags.features[runs.space.bag[runs.Lookup(entry)] / bags.batch].table;
  return {run, static_cast<int64_t>(runs.Key(entry)) - runs.space.table_key[table], table};
}

struct Corrections {
  float first = 1;   // 1 / (1 - beta1^t)
  float second = 1;  // 1 / (1 - beta2^t)
};

PORTOLAN_CPU_INLINE float MeanSquare(const float* gradient, int32_t dim) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int32_t d = 0; d < dim; ++d) sum += gradient[d] * gradient[d];
  return sum / static_cast<float>(dim);
}

// One step of one row. gradient [dim] is already scaled; weights [dim] in fp32.
PORTOLAN_CPU_CLONES void UpdateWeights(const RowUpdate& update, const Corrections& corrections, int32_t dim,
                                       const float* __restrict gradient, float* __restrict weights,
                                       float* __restrict state) {
  const float lr = update.learning_rate, eps = update.epsilon, beta1 = update.beta1, beta2 = update.beta2;
  switch (update.optimizer) {
    case RowOptimizer::kSgd:
      for (int32_t d = 0; d < dim; ++d) weights[d] -= lr * gradient[d];
      return;
    case RowOptimizer::kAdagrad:
      for (int32_t d = 0; d < dim; ++d) {
        state[d] += gradient[d] * gradient[d];
        weights[d] -= lr * gradient[d] / (std::sqrt(state[d]) + eps);
      }
      return;
    case RowOptimizer::kRowwiseAdagrad: {
      state[0] += MeanSquare(gradient, dim);
      const float rate = lr / (std::sqrt(state[0]) + eps);
      for (int32_t d = 0; d < dim; ++d) weights[d] -= rate * gradient[d];
      return;
    }
    case RowOptimizer::kAdam: {
      float* v = state + dim;
      for (int32_t d = 0; d < dim; ++d) {
        state[d] = beta1 * state[d] + (1 - beta1) * gradient[d];
        v[d] = beta2 * v[d] + (1 - beta2) * gradient[d] * gradient[d];
        weights[d] -= lr * (state[d] * corrections.first) / (std::sqrt(v[d] * corrections.second) + eps);
      }
      return;
    }
    case RowOptimizer::kRowwiseAdam: {
      state[dim] = beta2 * state[dim] + (1 - beta2) * MeanSquare(gradient, dim);
      const float rate = lr * corrections.first / (std::sqrt(state[dim] * corrections.second) + eps);
      for (int32_t d = 0; d < dim; ++d) {
        state[d] = beta1 * state[d] + (1 - beta1) * gradient[d];
        weights[d] -= rate * state[d];
      }
      return;
    }
  }
}

PORTOLAN_CPU_CLONES void Scale(float factor, int32_t dim, float* values) {
  for (int32_t d = 0; d < dim; ++d) values[d] *= factor;
}

PORTOLAN_CPU_CLONES void Add(int32_t dim, const float* __restrict from, float* __restrict to) {
  for (int32_t d = 0; d < dim; ++d) to[d] += from[d];
}

PORTOLAN_CPU_CLONES void LoadFp16(const uint16_t* __restrict row, int32_t dim, float* __restrict values) {
  for (int32_t d = 0; d < dim; ++d) values[d] = HalfToFloat(row[d]);
}
PORTOLAN_CPU_CLONES void LoadBf16(const uint16_t* __restrict row, int32_t dim, float* __restrict values) {
  for (int32_t d = 0; d < dim; ++d) values[d] = Bf16ToFloat(row[d]);
}
PORTOLAN_CPU_CLONES void StoreBf16(const float* __restrict values, int32_t dim, uint32_t key,
                                   uint16_t* __restrict row) {
  for (int32_t d = 0; d < dim; ++d) {
    row[d] = FloatToBf16Stochastic(values[d], RandomBits(key, static_cast<uint32_t>(d)));
  }
}

class Updater {
 public:
  Updater(const EmbeddingBags& bags, const RowUpdate& update) : bags_(bags), update_(update) {
    const bool adam = update.optimizer == RowOptimizer::kAdam || update.optimizer == RowOptimizer::kRowwiseAdam;
    if (adam) {
      const auto step = static_cast<double>(update.step);
      corrections_.first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), step)));
      corrections_.second = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), step)));
    }
  }

  void Prefetch(const Row& row) const {
    const EmbeddingTable& table = bags_.tables[row.table];
    const int64_t row_bytes = RowBytes(table.format, table.dim);
    const char* weights = static_cast<const char*>(table.rows) + row.row * row_bytes;
    for (int64_t byte = 0; byte < row_bytes; byte += kCacheLine) __builtin_prefetch(weights + byte, 1);
    const int64_t state_bytes = 4 * RowStateFloats(update_.optimizer, table.dim);
    const char* state = reinterpret_cast<const char*>(table.state) + row.row * state_bytes;
    for (int64_t byte = 0; byte < state_bytes; byte += kCacheLine) __builtin_prefetch(state + byte, 1);
  }

  // `gradient` [dim] is the row's whole sum, and is scaled here; `values` [dim] is scratch.
  void Apply(const Row& row, float* gradient, float* values) const {
    const EmbeddingTable& table = bags_.tables[row.table];
    char* stored = static_cast<char*>(table.rows) + row.row * RowBytes(table.format, table.dim);
    float* state = table.state + row.row * RowStateFloats(update_.optimizer, table.dim);
    if (update_.gradient_scale != 1.0f) Scale(update_.gradient_scale, table.dim, gradient);
    if (table.format == RowFormat::kFp32) {
      return UpdateWeights(update_, corrections_, table.dim, gradient, reinterpret_cast<float*>(stored), state);
    }
    const uint32_t key =
        RowKey(update_.seed, (static_cast<uint64_t>(row.table) << 40) + static_cast<uint64_t>(row.row));
    switch (table.format) {
      case RowFormat::kFp32:
        break;
      case RowFormat::kFp16:
        LoadFp16(reinterpret_cast<const uint16_t*>(stored), table.dim, values);
        break;
      case RowFormat::kBf16:
        LoadBf16(reinterpret_cast<const uint16_t*>(stored), table.dim, values);
        UpdateWeights(update_, corrections_, table.dim, gradient, values, state);
        return StoreBf16(values, table.dim, key, reinterpret_cast<uint16_t*>(stored));
      case RowFormat::kInt8:
        LoadRow(stored, table.format, table.dim, values);
        break;
    }
    UpdateWeights(update_, corrections_, table.dim, gradient, values, state);
    StoreRowStochastic(values, table.dim, table.format, key, stored);
  }

 private:
  const EmbeddingBags& bags_;
  const RowUpdate& update_;
  Corrections corrections_;
};

// Calls visit(rows [count], count, sums [count, stride], scratch [dim]) from several threads, each row once.
template <typename Visit>
void ForEachRowGradient(const EmbeddingBags& bags, const Runs& runs, Visit visit) {
  const int32_t max_dim = MaxDim(bags);
  const Workspace& space = runs.space;
  // Hot rows first: their blocks are summed by all threads, then one thread adds the blocks in order.
  int64_t first_block = 0;
  for (int64_t h = 0; h < runs.hot_count; ++h) {
    const int64_t run = space.hot[h];
    const int64_t begin = space.starts[run], end = space.starts[run + 1];
    const int32_t dim = bags.tables[RowOf(bags, runs, run).table].dim;
    const int64_t blocks = (end - begin + kHotRowBlock - 1) / kHotRowBlock;
    float* sums = space.sums + first_block * max_dim;
    first_block += blocks;
#pragma omp parallel for schedule(dynamic) if (blocks > 4)
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t from = begin + block * kHotRowBlock;
      SumGradients(bags, runs, from, std::min(from + kHotRowBlock, end), dim, sums + block * max_dim);
    }
  }
  const int64_t stride = Aligned(4 * max_dim) / 4;
#pragma omp parallel
  {
    std::vector<float> scratch(static_cast<size_t>((kRowsPerTask + 1) * stride + kAlignment / 4));
    auto* sums = reinterpret_cast<float*>(Aligned(reinterpret_cast<intptr_t>(scratch.data())));
    float* values = sums + kRowsPerTask * stride;
    std::array<Row, kRowsPerTask> rows;
#pragma omp for schedule(dynamic) nowait
    for (int64_t task = 0; task < (runs.count + kRowsPerTask - 1) / kRowsPerTask; ++task) {
      const int64_t last = std::min((task + 1) * kRowsPerTask, runs.count);
      int64_t count = 0;
      for (int64_t run = task * kRowsPerTask; run < last; ++run) {
        if (run + kPrefetchGradients < last) {
          const int64_t ahead = space.starts[run + kPrefetchGradients];
          const auto* gradient = reinterpret_cast<const char*>(GradientOf(bags, runs, ahead).values);
          for (int64_t byte = 0; byte < 4 * max_dim; byte += kCacheLine) __builtin_prefetch(gradient + byte);
        }
        const int64_t begin = space.starts[run], end = space.starts[run + 1];
        if (end - begin > kHotRowBlock) continue;
        const Row row = RowOf(bags, runs, run);
        SumGradients(bags, runs, begin, end, bags.tables[row.table].dim, sums + count * stride);
        rows[static_cast<size_t>(count++)] = row;
      }
      visit(rows.data(), count, sums, stride, values);
    }
  }
  std::vector<float> values(static_cast<size_t>(max_dim));
  first_block = 0;
  for (int64_t h = 0; h < runs.hot_count; ++h) {
    const Row row = RowOf(bags, runs, space.hot[h]);
    const int64_t blocks = (space.starts[row.run + 1] - space.starts[row.run] + kHotRowBlock - 1) / kHotRowBlock;
    float* sum = space.sums + first_block * max_dim;
    for (int64_t block = 1; block < blocks; ++block) Add(bags.tables[row.table].dim, sum + block * max_dim, sum);
    first_block += blocks;
    visit(&row, int64_t{1}, sum, stride, values.data());
  }
}

}  // namespace

int64_t EmbeddingBackwardWorkspaceBytes(const EmbeddingBags& bags, int64_t lookups) {
  Workspace space;
  return Carve(bags, lookups, nullptr, &space);
}

namespace cpu {

void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* workspace) {
  const Runs runs = SortLookups(bags, workspace);
  const Updater updater(bags, update);
  ForEachRowGradient(bags, runs, [&](const Row* rows, int64_t count, float* sums, int64_t stride, float* values) {
    for (int64_t i = 0; i < count; ++i) {
      if (i + kPrefetchRows < count) updater.Prefetch(rows[i + kPrefetchRows]);
      updater.Apply(rows[i], sums + i * stride, values);
    }
  });
}

double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* workspace) {
  const Runs runs = SortLookups(bags, workspace);
  // One sum a row, kept in the place of the entries' swap space, then added in order.
  auto* squares = reinterpret_cast<double*>(runs.space.swap);
  ForEachRowGradient(bags, runs, [&](const Row* rows, int64_t count, const float* sums, int64_t stride, float*) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t dim = bags.tables[rows[i].table].dim;
      double square = 0;
      for (int32_t d = 0; d < dim; ++d) square += static_cast<double>(sums[i * stride + d]) * sums[i * stride + d];
      squares[rows[i].run] = square;
    }
  });
  double total = 0;
  for (int64_t run = 0; run < runs.count; ++run) total += squares[run];
  return total;
}

}  // namespace cpu
}  // namespace portolan::kernels
