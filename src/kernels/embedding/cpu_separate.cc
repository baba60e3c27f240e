#include <cmath>
#include <vector>

#include "base/cpu_clones.h"
#include "kernels/embedding/cpu_runs.h"
#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

// The backward pass as frameworks with sparse gradients run it: the gradient of every lookup, then of every row, as
// tensors of their own; then the optimizer's formula, one operation a pass.
namespace portolan::kernels {
namespace {

constexpr int64_t kRowsPerTask = 128;

PORTOLAN_CPU_CLONES void CopyScaled(int64_t count, float factor, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = factor * from[i];
}
PORTOLAN_CPU_CLONES void AddTo(int64_t count, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}
PORTOLAN_CPU_CLONES void Square(int64_t count, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * from[i];
}
// to = decay to + (1 - decay) from.
PORTOLAN_CPU_CLONES void Blend(int64_t count, float decay, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = decay * to[i] + (1 - decay) * from[i];
}
PORTOLAN_CPU_CLONES void SquareRoot(int64_t count, float scale, float epsilon, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = std::sqrt(values[i] * scale) + epsilon;
}
PORTOLAN_CPU_CLONES void Divide(int64_t count, float scale, const float* __restrict by, float* __restrict values) {
  for (int64_t i = 0; i < count; ++i) values[i] = scale * values[i] / by[i];
}
PORTOLAN_CPU_CLONES void Subtract(int64_t count, float rate, const float* __restrict step, float* __restrict values) {
  for (int64_t i = 0; i < count; ++i) values[i] -= rate * step[i];
}
PORTOLAN_CPU_CLONES float Mean(int64_t count, const float* values) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum / static_cast<float>(count);
}

// The sparse gradients of one batch: row(run) of table(run), values of `dim` at dense offsets.
class SparseStep {
 public:
  SparseStep(const EmbeddingBags& bags, const RowUpdate& update, void* workspace)
      : bags_(bags), update_(update), runs_(SortLookups(bags, workspace)), dim_(MaxDim(bags)) {
    char* after = static_cast<char*>(workspace) + EmbeddingBackwardWorkspaceBytes(bags, runs_.lookups);
    values_ = reinterpret_cast<float*>(after);
    gradient_ = values_ + runs_.lookups * dim_;
    square_ = values_;  // the lookups' gradients are not needed once they are summed
  }

  void Run() {
    Expand();
    Coalesce();
    if (update_.gradient_scale != 1.0f) {
      Pass([&](int64_t run, const Row& row) {
        CopyScaled(row.dim, update_.gradient_scale, Gradient(run), Other(run));
        CopyScaled(row.dim, 1, Other(run), Gradient(run));
      });
    }
    Optimize();
  }

 private:
  struct Row {
    int32_t dim;
    int32_t table;
    int64_t row;
    char* stored;
    float* state;
  };
  Row RowOf(int64_t run) const {
    const int64_t entry = runs_.space.starts[run];
    Row row;
    row.table = bags_.features[runs_.space.bag[runs_.Lookup(entry)] / bags_.batch].table;
    const EmbeddingTable& table = bags_.tables[row.table];
    row.row = static_cast<int64_t>(runs_.Key(entry)) - runs_.space.table_key[row.table];
    row.dim = table.dim;
    row.stored = static_cast<char*>(table.rows) + row.row * RowBytes(table.format, table.dim);
    row.state = table.state + row.row * RowStateFloats(update_.optimizer, table.dim);
    return row;
  }
  float* Gradient(int64_t run) const { return gradient_ + run * dim_; }
  float* Other(int64_t run) const { return square_ + run * dim_; }

  template <typename Visit>
  void Pass(Visit visit) const {
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < (runs_.count + kRowsPerTask - 1) / kRowsPerTask; ++task) {
      for (int64_t run = task * kRowsPerTask; run < std::min((task + 1) * kRowsPerTask, runs_.count); ++run) {
        visit(run, RowOf(run));
      }
    }
  }

  // values [lookups, dim] = the gradient of every lookup.
  void Expand() {
#pragma omp parallel for schedule(static)
    for (int64_t bag = 0; bag < bags_.feature_count * bags_.batch; ++bag) {
      const int64_t f = bag / bags_.batch, first = bags_.offsets[f * bags_.batch];
      const EmbeddingFeature& feature = bags_.features[f];
      const int64_t begin = bags_.offsets[bag], end = bags_.offsets[bag + 1];
      const float share = feature.pooling == BagPooling::kMean ? 1.0f / static_cast<float>(end - begin) : 1.0f;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = feature.pooling == BagPooling::kNone ? i - first : bag - f * bags_.batch;
        CopyScaled(bags_.tables[feature.table].dim, bags_.weights != nullptr ? share * bags_.weights[i] : share,
                   feature.output + place * feature.output_stride, values_ + i * dim_);
      }
    }
  }

  // gradient [rows, dim] = the sums over the lookups of each row.
  void Coalesce() {
    Pass([&](int64_t run, const Row& row) {
      const int64_t begin = runs_.space.starts[run], end = runs_.space.starts[run + 1];
      CopyScaled(row.dim, 1, values_ + runs_.Lookup(begin) * dim_, Gradient(run));
      for (int64_t entry = begin + 1; entry < end; ++entry) {
        AddTo(row.dim, values_ + runs_.Lookup(entry) * dim_, Gradient(run));
      }
    });
  }

  void Optimize() {
    const float eps = update_.epsilon;
    float first = 1, second = 1;  // Adam's corrections
    switch (update_.optimizer) {
      case RowOptimizer::kSgd:
        return Apply(update_.learning_rate);
      case RowOptimizer::kAdagrad:
        Pass([&](int64_t run, const Row& row) { Square(row.dim, Gradient(run), Other(run)); });
        Pass([&](int64_t run, const Row& row) { AddTo(row.dim, Other(run), row.state); });
        Pass([&](int64_t run, const Row& row) { CopyScaled(row.dim, 1, row.state, Other(run)); });
        Pass([&](int64_t run, const Row& row) { SquareRoot(row.dim, 1, eps, Other(run)); });
        Pass([&](int64_t run, const Row& row) { Divide(row.dim, 1, Other(run), Gradient(run)); });
        return Apply(update_.learning_rate);
      case RowOptimizer::kRowwiseAdagrad:
        Pass([&](int64_t run, const Row& row) { Square(row.dim, Gradient(run), Other(run)); });
        Pass([&](int64_t run, const Row& row) { row.state[0] += Mean(row.dim, Other(run)); });
        Pass([&](int64_t run, const Row& row) {
          CopyScaled(row.dim, 1 / (std::sqrt(row.state[0]) + eps), Gradient(run), Other(run));
        });
        std::swap(gradient_, square_);
        return Apply(update_.learning_rate);
      case RowOptimizer::kAdam:
      case RowOptimizer::kRowwiseAdam:
        break;
    }
    const auto step = static_cast<double>(update_.step);
    first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update_.beta1), step)));
    second = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update_.beta2), step)));
    const bool rowwise = update_.optimizer == RowOptimizer::kRowwiseAdam;
    Pass([&](int64_t run, const Row& row) { Square(row.dim, Gradient(run), Other(run)); });
    Pass([&](int64_t run, const Row& row) { Blend(row.dim, update_.beta1, Gradient(run), row.state); });
    if (rowwise) {
      Pass([&](int64_t run, const Row& row) {
        const float mean = Mean(row.dim, Other(run));
        Blend(1, update_.beta2, &mean, row.state + row.dim);
      });
      Pass([&](int64_t run, const Row& row) { std::fill_n(Other(run), row.dim, row.state[row.dim]); });
    } else {
      Pass([&](int64_t run, const Row& row) { Blend(row.dim, update_.beta2, Other(run), row.state + row.dim); });
      Pass([&](int64_t run, const Row& row) { CopyScaled(row.dim, 1, row.state + row.dim, Other(run)); });
    }
    Pass([&](int64_t run, const Row& row) { CopyScaled(row.dim, 1, row.state, Gradient(run)); });
    Pass([&](int64_t run, const Row& row) { SquareRoot(row.dim, second, eps, Other(run)); });
    Pass([&](int64_t run, const Row& row) { Divide(row.dim, first, Other(run), Gradient(run)); });
    Apply(update_.learning_rate);
  }

  void Apply(float rate) const {
    Pass([&](int64_t run, const Row& row) {
      const EmbeddingTable& table = bags_.tables[row.table];
      if (table.format == RowFormat::kFp32) {
        return Subtract(row.dim, rate, Gradient(run), reinterpret_cast<float*>(row.stored));
      }
      std::vector<float> weights(static_cast<size_t>(row.dim));
      LoadRow(row.stored, table.format, row.dim, weights.data());
      Subtract(row.dim, rate, Gradient(run), weights.data());
      const uint32_t key =
          RowKey(update_.seed, (static_cast<uint64_t>(row.table) << 40) + static_cast<uint64_t>(row.row));
      StoreRowStochastic(weights.data(), row.dim, table.format, key, row.stored);
    });
  }

  const EmbeddingBags& bags_;
  const RowUpdate& update_;
  const Runs runs_;
  const int64_t dim_;
  float *values_, *gradient_, *square_;
};

}  // namespace

int64_t EmbeddingBackwardSeparateWorkspaceBytes(const EmbeddingBags& bags, int64_t lookups) {
  return EmbeddingBackwardWorkspaceBytes(bags, lookups) + 2 * Aligned(lookups * MaxDim(bags) * 4);
}

namespace cpu {

void EmbeddingBackwardSeparate(const EmbeddingBags& bags, const RowUpdate& update, void* workspace) {
  SparseStep(bags, update, workspace).Run();
}

}  // namespace cpu
}  // namespace portolan::kernels
