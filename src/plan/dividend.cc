#include "plan/dividend.h"

#include <cmath>
#include <functional>
#include <optional>

namespace portolan {
namespace {

constexpr double kLargestFactor = 64;
constexpr double kTimeTolerance = 1.005;

// A model and recipe scaled by a factor, or nothing when the shapes do not allow it.
struct Scaled {
  Model model;
  Recipe recipe;
  double time_factor = 1;  // by which the time budget grows
};
using Scaling = std::function<std::optional<Scaled>(const Model&, const Recipe&, double)>;

std::optional<Scaled> ScaleRows(const Model& model, const Recipe& recipe, double factor) {
  Scaled scaled{model, recipe};
  for (Table& table : scaled.model.tables) table.rows = std::floor(table.rows * factor);
  return scaled;
}

std::optional<Scaled> ScaleDimension(const Model& model, const Recipe& recipe, double factor) {
  Scaled scaled{model, recipe};
  for (Table& table : scaled.model.tables) {
    table.dim = static_cast<int64_t>(std::floor(static_cast<double>(table.dim) * factor));
  }
  if (!scaled.model.InferShapes()) return std::nullopt;
  return scaled;
}

std::optional<Scaled> ScaleSequence(const Model& model, const Recipe& recipe, double factor) {
  Scaled scaled{model, recipe};
  bool any = false;
  const auto is_history = [](double tokens) { return tokens > 16; };
  for (size_t g = 0; g < scaled.model.groups.size(); ++g) {
    FeatureGroup& group = scaled.model.groups[g];
    if (group.pooling != Pooling::kNone || !is_history(group.tokens)) continue;
    any = true;
    group.tokens *= factor;
    for (Feature& feature : scaled.model.features) {
      if (feature.group == static_cast<int>(g)) feature.lookups *= factor;
    }
  }
  for (DenseInput& input : scaled.model.dense_inputs) {
    if (is_history(input.shape.tokens)) input.shape.tokens *= factor;
  }
  for (Block& block : scaled.model.blocks) {
    if (auto* transformer = std::get_if<TransformerBlock>(&block.body)) {
      const double own = transformer->own_weight_tokens;
      for (auto* counts : {&transformer->query_tokens, &transformer->key_tokens}) {
        for (double& count : *counts) count = own + (count - own) * factor;
      }
    } else if (auto* select = std::get_if<SelectBlock>(&block.body); select != nullptr && is_history(select->tokens)) {
      select->tokens *= factor;
    }
  }
  if (!any || !scaled.model.InferShapes()) return std::nullopt;
  return scaled;
}

std::optional<Scaled> ScaleBatch(const Model& model, const Recipe& recipe, double factor) {
  Scaled scaled{model, recipe, factor};
  if (recipe.global_batch > 0) {
    scaled.recipe.global_batch = static_cast<int64_t>(static_cast<double>(recipe.global_batch) * factor);
  } else {
    scaled.recipe.local_batch = static_cast<int64_t>(static_cast<double>(recipe.local_batch) * factor);
  }
  return scaled;
}

enum class Verdict { kFits, kMemory, kTime, kImpossible };

Verdict Try(const Scaling& scaling, const Model& model, const DividendSide& side, double factor) {
  const std::optional<Scaled> scaled = scaling(model, side.recipe, factor);
  if (!scaled) return Verdict::kImpossible;
  const Result<StepEstimate> estimate = EstimateStepPlaced(scaled->model, scaled->recipe, side.cluster, side.placement);
  if (!estimate) return Verdict::kImpossible;
  if (!estimate->memory.Fits()) return Verdict::kMemory;
  return estimate->step <= scaled->time_factor * kTimeTolerance * side.budget ? Verdict::kFits : Verdict::kTime;
}

// The largest factor that fits, in [1, kLargestFactor]; *limit says what stops it.
std::optional<double> LargestFactor(const Scaling& scaling, const Model& model, const DividendSide& side,
                                    std::string* limit) {
  double low = 1, high = kLargestFactor;
  Verdict stopped = Try(scaling, model, side, 1);
  if (stopped == Verdict::kImpossible) return std::nullopt;
  if (stopped == Verdict::kFits) {
    stopped = Try(scaling, model, side, high);
    if (stopped == Verdict::kImpossible) stopped = Try(scaling, model, side, 2);
    if (stopped == Verdict::kImpossible) return std::nullopt;
    if (stopped == Verdict::kFits) {
      *limit = "the search's end (64x)";
      return high;
    }
    while (high / low > 1.01) {
      const double middle = std::sqrt(low * high);
      const Verdict verdict = Try(scaling, model, side, middle);
      if (verdict == Verdict::kFits) {
        low = middle;
      } else {
        high = middle;
        stopped = verdict;
      }
    }
  }
  *limit = stopped == Verdict::kMemory ? "memory" : "time";
  return low;
}

// Rows stored narrower than fp32, stored wider again: how many times the bytes of a value. Two or three formats are
// tried, the widest first.
std::optional<double> WiderRows(const Model& model, const DividendSide& side, std::string* limit) {
  const double now = SizeOf(side.recipe.embedding_row).value;
  std::optional<double> best;
  *limit = "fp32 is the widest format";
  for (const DType format : {DType::kFp32, DType::kFp16}) {
    const double factor = SizeOf(format).value / now;
    if (factor <= 1) continue;
    const Scaling widen = [format](const Model& m, const Recipe& r, double) {
      Scaled scaled{m, r};
      scaled.recipe.embedding_row = format;
      return std::optional(scaled);
    };
    const Verdict verdict = Try(widen, model, side, factor);
    if (verdict == Verdict::kFits) return factor;
    if (verdict == Verdict::kImpossible) return std::nullopt;
    *limit = verdict == Verdict::kMemory ? "memory" : "time";
    best = 1;
  }
  return best;
}

}  // namespace

std::vector<Dividend> CapacityDividends(const Model& model, const DividendSide& from, const DividendSide& to) {
  const std::pair<const char*, Scaling> dimensions[] = {{"table rows", ScaleRows},
                                                        {"embedding dimension", ScaleDimension},
                                                        {"sequence length", ScaleSequence},
                                                        {"local batch", ScaleBatch}};
  std::vector<Dividend> dividends;
  for (const auto& [name, scaling] : dimensions) {
    const bool of_tables = std::string(name) == "table rows" || std::string(name) == "embedding dimension";
    if (of_tables && model.tables.empty()) continue;
    Dividend dividend;
    dividend.dimension = name;
    std::string ignored;
    const auto here = LargestFactor(scaling, model, to, &dividend.limit);
    const auto there = LargestFactor(scaling, model, from, &ignored);
    if (!here || !there) continue;
    dividend.factor = *here;
    dividend.factor_from = *there;
    dividends.push_back(std::move(dividend));
  }
  if (!model.tables.empty()) {
    Dividend rows;
    rows.dimension = "bytes of a row value";
    std::string ignored;
    const auto here = WiderRows(model, to, &rows.limit);
    const auto there = WiderRows(model, from, &ignored);
    if (here && there) {
      rows.factor = *here;
      rows.factor_from = *there;
      dividends.push_back(std::move(rows));
    }
  }
  return dividends;
}

}  // namespace portolan
