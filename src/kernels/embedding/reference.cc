#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::reference {
namespace {

// Calls visit(table, lookup, weight, share, gradient or output vector) for every lookup, in order. The row's factor in
// its output is weight * share; share is 1 / bag length for kMean, otherwise 1.
template <typename Visit>
void ForEachLookup(const EmbeddingBags& bags, Visit visit) {
  for (int32_t f = 0; f < bags.feature_count; ++f) {
    const EmbeddingFeature& feature = bags.features[f];
    const int64_t first = bags.offsets[f * bags.batch];
    for (int64_t b = 0; b < bags.batch; ++b) {
      const int64_t begin = bags.offsets[f * bags.batch + b];
      const int64_t end = bags.offsets[f * bags.batch + b + 1];
      for (int64_t i = begin; i < end; ++i) {
        const double weight = bags.weights != nullptr ? bags.weights[i] : 1.0;
        const double share = feature.pooling == BagPooling::kMean ? 1.0 / static_cast<double>(end - begin) : 1.0;
        const int64_t place = feature.pooling == BagPooling::kNone ? i - first : b;
        visit(feature.table, i, weight, share, feature.output + place * feature.output_stride);
      }
    }
  }
}

void* RowOf(const EmbeddingTable& table, int64_t row) {
  return static_cast<char*>(table.rows) + row * RowBytes(table.format, table.dim);
}

// G of every row that was looked up, by (table, row), in double.
std::map<std::pair<int32_t, int64_t>, std::vector<double>> RowGradients(const EmbeddingBags& bags) {
  std::map<std::pair<int32_t, int64_t>, std::vector<double>> gradients;
  ForEachLookup(bags, [&](int32_t t, int64_t i, double weight, double share, const float* gradient) {
    std::vector<double>& sum = gradients[{t, bags.ids[i]}];
    sum.resize(static_cast<size_t>(bags.tables[t].dim));
    for (int32_t d = 0; d < bags.tables[t].dim; ++d) sum[d] += weight * share * gradient[d];
  });
  return gradients;
}

void UpdateRow(const RowUpdate& update, int32_t dim, const double* gradient, float* weights, float* state) {
  const double lr = update.learning_rate, eps = update.epsilon, beta1 = update.beta1, beta2 = update.beta2;
  const double correct1 = 1 - std::pow(beta1, static_cast<double>(update.step));
  const double correct2 = 1 - std::pow(beta2, static_cast<double>(update.step));
  double mean_square = 0;
  for (int32_t d = 0; d < dim; ++d) mean_square += gradient[d] * gradient[d] / dim;
  switch (update.optimizer) {
    case RowOptimizer::kSgd:
      for (int32_t d = 0; d < dim; ++d) weights[d] = static_cast<float>(weights[d] - lr * gradient[d]);
      return;
    case RowOptimizer::kAdagrad:
      for (int32_t d = 0; d < dim; ++d) {
        state[d] = static_cast<float>(state[d] + gradient[d] * gradient[d]);
        weights[d] =
            static_cast<float>(weights[d] - lr * gradient[d] / (std::sqrt(static_cast<double>(state[d])) + eps));
      }
      return;
    case RowOptimizer::kRowwiseAdagrad:
      state[0] = static_cast<float>(state[0] + mean_square);
      for (int32_t d = 0; d < dim; ++d) {
        weights[d] =
            static_cast<float>(weights[d] - lr * gradient[d] / (std::sqrt(static_cast<double>(state[0])) + eps));
      }
      return;
    case RowOptimizer::kAdam:
    case RowOptimizer::kRowwiseAdam: {
      const bool one_v = update.optimizer == RowOptimizer::kRowwiseAdam;
      float* v = state + dim;
      if (one_v) v[0] = static_cast<float>(beta2 * v[0] + (1 - beta2) * mean_square);
      for (int32_t d = 0; d < dim; ++d) {
        state[d] = static_cast<float>(beta1 * state[d] + (1 - beta1) * gradient[d]);
        if (!one_v) v[d] = static_cast<float>(beta2 * v[d] + (1 - beta2) * gradient[d] * gradient[d]);
        const double root = std::sqrt(static_cast<double>(v[one_v ? 0 : d]) / correct2);
        weights[d] = static_cast<float>(weights[d] - lr * (state[d] / correct1) / (root + eps));
      }
      return;
    }
  }
}

}  // namespace

void EmbeddingForward(const EmbeddingBags& bags) {
  for (int32_t f = 0; f < bags.feature_count; ++f) {
    const EmbeddingFeature& feature = bags.features[f];
    const int64_t* offsets = bags.offsets + f * bags.batch;
    const int64_t outputs = feature.pooling == BagPooling::kNone ? offsets[bags.batch] - offsets[0] : bags.batch;
    for (int64_t b = 0; b < outputs; ++b) {
      for (int32_t d = 0; d < bags.tables[feature.table].dim; ++d) feature.output[b * feature.output_stride + d] = 0;
    }
  }
  std::vector<float> row;
  ForEachLookup(bags, [&](int32_t t, int64_t i, double weight, double share, float* output) {
    const EmbeddingTable& table = bags.tables[t];
    row.assign(static_cast<size_t>(table.dim), 0);
    LoadRow(RowOf(table, bags.ids[i]), table.format, table.dim, row.data());
    for (int32_t d = 0; d < table.dim; ++d) output[d] = static_cast<float>(output[d] + weight * share * row[d]);
  });
}

void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* /*workspace*/) {
  for (auto& [key, gradient] : RowGradients(bags)) {
    const EmbeddingTable& table = bags.tables[key.first];
    for (double& value : gradient) value *= update.gradient_scale;
    std::vector<float> weights(static_cast<size_t>(table.dim));
    void* row = RowOf(table, key.second);
    LoadRow(row, table.format, table.dim, weights.data());
    UpdateRow(update, table.dim, gradient.data(), weights.data(),
              table.state + key.second * RowStateFloats(update.optimizer, table.dim));
    const uint64_t place = (static_cast<uint64_t>(key.first) << 40) + static_cast<uint64_t>(key.second);
    StoreRowStochastic(weights.data(), table.dim, table.format, RowKey(update.seed, place), row);
  }
}

void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient) {
  std::vector<float> row;
  ForEachLookup(bags, [&](int32_t t, int64_t i, double /*weight*/, double share, const float* gradient) {
    const EmbeddingTable& table = bags.tables[t];
    row.assign(static_cast<size_t>(table.dim), 0);
    LoadRow(RowOf(table, bags.ids[i]), table.format, table.dim, row.data());
    double dot = 0;
    for (int32_t d = 0; d < table.dim; ++d) dot += static_cast<double>(row[d]) * gradient[d];
    weight_gradient[i] = static_cast<float>(dot * share);
  });
}

double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* /*workspace*/) {
  double sum = 0;
  for (const auto& [key, gradient] : RowGradients(bags)) {
    for (const double value : gradient) sum += value * value;
  }
  return sum;
}

}  // namespace portolan::kernels::reference
