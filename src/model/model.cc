#include "model/model.h"

#include <algorithm>
#include <cmath>

#include "model/shapes.h"

namespace portolan {
namespace {

struct TypeName {
  const char* operator()(const MlpBlock&) const { return "mlp"; }
  const char* operator()(const ConcatBlock&) const { return "concat"; }
  const char* operator()(const DotInteractionBlock&) const { return "dot_interaction"; }
  const char* operator()(const CrossBlock&) const { return "low_rank_cross"; }
  const char* operator()(const NormBlock&) const { return "norm"; }
  const char* operator()(const AddBlock&) const { return "add"; }
  const char* operator()(const PointwiseBlock&) const { return "pointwise"; }
  const char* operator()(const TokenLinearBlock&) const { return "token_linear"; }
  const char* operator()(const FactorizationBlock&) const { return "factorization"; }
  const char* operator()(const SelectBlock&) const { return "select"; }
  const char* operator()(const SliceBlock&) const { return "slice"; }
  const char* operator()(const ReshapeBlock&) const { return "reshape"; }
  const char* operator()(const TransformerBlock&) const { return "transformer"; }
  const char* operator()(const HstuBlock&) const { return "hstu"; }
};

// Weights and biases of each block type, from its input shape.
struct Parameters {
  TensorShape in;

  double operator()(const MlpBlock& mlp) const {
    double total = 0;
    double width = in.width;
    for (const int64_t out : mlp.widths) {
      total += static_cast<double>(mlp.groups) * (width + 1) * static_cast<double>(out);
      if (mlp.layer_norm) total += 2.0 * static_cast<double>(out);
      width = static_cast<double>(out);
    }
    return total;
  }
  double operator()(const CrossBlock& cross) const {
    const double rank = static_cast<double>(cross.rank);
    const double weights = cross.rank > 0 ? 2 * in.width * rank : in.width * in.width;
    return static_cast<double>(cross.layers) * (weights + in.width);
  }
  double operator()(const NormBlock&) const { return 2 * in.width; }
  double operator()(const TokenLinearBlock& linear) const { return in.tokens * static_cast<double>(linear.out_tokens); }
  double operator()(const FactorizationBlock& fm) const { return in.tokens * static_cast<double>(fm.rank); }
  double operator()(const TransformerBlock& transformer) const {
    const double inner = static_cast<double>(transformer.heads * transformer.head_dim);
    // Own weights: the Q, K, V and feed-forward products; the output projection is shared.
    const double own = 3 * in.width * inner + 2 * in.width * static_cast<double>(transformer.feed_forward_width);
    const double sets = 1 + transformer.own_weight_tokens;
    return static_cast<double>(transformer.layers) * (sets * own + in.width * inner + 2 * in.width);
  }
  double operator()(const HstuBlock& hstu) const {
    const double qk = static_cast<double>(hstu.heads * hstu.qk_dim);
    const double v = static_cast<double>(hstu.heads * hstu.v_dim);
    const double uvqk = (in.width + 1) * (2 * qk + 2 * v);
    const double output = static_cast<double>(hstu.output_inputs) * v * in.width;
    return static_cast<double>(hstu.layers) * (uvqk + output + 2 * in.width + 2 * v);
  }
  template <typename Other>
  double operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

double Model::UniqueRows(const Feature& feature, double samples) const {
  const double rows = tables[static_cast<size_t>(feature.table)].rows;
  const double lookups = samples * feature.lookups;
  if (feature.unique_ratio) return std::min({lookups * *feature.unique_ratio, lookups, rows});
  const double spread = lookups * (1 - feature.hottest_row_share);
  if (feature.skew_of == Feature::SkewOf::kBag && feature.lookups > 1) {
    const double bags = ExpectedUniqueRows(samples * (1 - feature.hottest_row_share), rows, feature.zipf_exponent);
    return std::min({bags * feature.lookups, rows, std::max(spread, 1.0)});
  }
  return std::min(rows, ExpectedUniqueRows(spread, rows, feature.zipf_exponent));
}

TensorShape Model::GroupShape(int group) const {
  const FeatureGroup& g = groups[static_cast<size_t>(group)];
  double count = 0, total_width = 0;
  int64_t dim = -1;
  for (const Feature& feature : features) {
    if (feature.group != group) continue;
    const int64_t feature_dim = tables[static_cast<size_t>(feature.table)].dim;
    if (g.pooling == Pooling::kNone) {
      total_width += static_cast<double>(feature_dim) * feature.lookups / g.tokens;
      continue;
    }
    count += 1;
    total_width += static_cast<double>(feature_dim);
    dim = dim == -1 || dim == feature_dim ? feature_dim : -2;
  }
  if (g.pooling == Pooling::kNone) return {g.tokens, total_width};
  if (dim > 0) return {count, static_cast<double>(dim)};
  return {1, total_width};
}

TensorShape Model::InputShape(const Block::Input& input) const {
  switch (input.kind) {
    case Block::Input::Kind::kDense:
      return dense_inputs[static_cast<size_t>(input.index)].shape;
    case Block::Input::Kind::kGroup:
      return GroupShape(input.index);
    case Block::Input::Kind::kBlock:
      return blocks[static_cast<size_t>(input.index)].shape;
  }
  return {};
}

Status Model::InferShapes() {
  for (Block& block : blocks) {
    std::vector<TensorShape> inputs;
    for (const Block::Input& input : block.inputs) inputs.push_back(InputShape(input));
    PORTOLAN_ASSIGN_OR_RETURN(block.shape, InferShape(block.body, inputs));
  }
  return {};
}

double Model::DenseElements() const {
  double total = 0;
  for (const DenseInput& input : dense_inputs) total += input.shape.elements();
  return total;
}

const char* BlockTypeName(const BlockBody& body) { return std::visit(TypeName{}, body); }

double BlockParameters(const Model& model, const Block& block) {
  if (block.inputs.empty()) return 0;
  return std::visit(Parameters{model.InputShape(block.inputs[0])}, block.body);
}

double DenseParameters(const Model& model) {
  double total = 0;
  for (const Block& block : model.blocks) total += BlockParameters(model, block);
  return total;
}

double EmbeddingParameters(const Model& model) {
  double total = 0;
  for (const Table& table : model.tables) total += table.rows * static_cast<double>(table.dim);
  return total;
}

}  // namespace portolan
