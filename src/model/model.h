#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/yaml.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/optimizer.h"

namespace portolan {

// A recommendation model as a graph of blocks, read from YAML (docs/models.md is the reference of the format). Shapes
// are per sample: a tensor is [tokens, width], where tokens may be a mean over the batch (jagged histories).
struct TensorShape {
  double tokens = 1;
  double width = 0;
  double elements() const { return tokens * width; }
};

struct Table {
  std::string name;
  double rows = 0;
  int64_t dim = 0;
};

// One categorical feature: `lookups` indices a sample (mean) into a table.
struct Feature {
  std::string name;
  int table = 0;  // index into Model::tables
  int group = 0;  // index into Model::groups
  double lookups = 1;
  // Distinct rows over lookups in one global batch: stated, or from the skew of the index stream.
  std::optional<double> unique_ratio;
  double zipf_exponent = 0;
  // What repeats: single indices, or whole bags (multi-hot ids that are a fixed map of one id, as MLPerf's Criteo set).
  enum class SkewOf { kLookup, kBag } skew_of = SkewOf::kLookup;
  // Share of the lookups that go to one row, for example padding: under row sharding they all go to one device.
  double hottest_row_share = 0;
};

enum class Pooling { kSum, kNone };  // kSum stands for mean too: the same traffic

// Features that enter the graph together under one name. Pooled: one [features, dim] tensor (or [1, sum of dims] when
// dims differ). Not pooled: `tokens` a sample, each the concatenation of its features' rows.
struct FeatureGroup {
  std::string name;
  Pooling pooling = Pooling::kSum;
  double tokens = 0;  // pooling kNone only
  // Padded histories: the share of the tokens that is real, and whether the model computes with the rest.
  double filled = 1;
  enum class Padding { kMasked, kAttended } padding = Padding::kMasked;
};

enum class Activation { kNone, kRelu, kGelu, kSilu, kSigmoid };

// Dense layers over the last axis; `groups` > 1 gives every token its own weights (tokens must be a multiple).
struct MlpBlock {
  std::vector<int64_t> widths;
  Activation activation = Activation::kRelu;
  Activation last_activation = Activation::kRelu;
  int64_t groups = 1;
  bool layer_norm = false;
};
enum class ConcatAxis { kWidth, kTokens };
struct ConcatBlock {
  ConcatAxis axis = ConcatAxis::kWidth;
  int64_t pad_multiple = 1;  // zero columns up to a multiple of this
};
// DLRM pairwise dot products of all [dim] vectors of its inputs, concatenated with the first input.
struct DotInteractionBlock {
  int64_t pad_multiple = 1;  // as ConcatBlock
};
// DCNv2: x0 * (U V x + b) + x; rank 0 = a full matrix.
struct CrossBlock {
  int64_t layers = 1;
  int64_t rank = 0;
};
struct NormBlock {};
// Columns [offset, offset + width) of the input: a view, no copy.
struct SliceBlock {
  int64_t offset = 0;
  int64_t width = 1;
};
// The same elements as `tokens` tokens; moves nothing.
struct ReshapeBlock {
  double tokens = 1;
};
// Sum of its inputs, which have one shape.
struct AddBlock {};
// A pointwise chain that reads and writes the tensor so many times: for what has no block of its own.
struct PointwiseBlock {
  double forward_passes = 2;
  double backward_passes = 3;
};
// Linear over the token axis, [tokens, width] -> [out_tokens, width] (Wukong's linear compress block; token mixing).
struct TokenLinearBlock {
  int64_t out_tokens = 1;
};
// Wukong's factorization machine: X (X^T Y) with Y [tokens, rank] -> [1, tokens * rank], normalised.
struct FactorizationBlock {
  int64_t rank = 1;
};
// Keeps `tokens` of the input's tokens (last, or pooled: the traffic is the same).
struct SelectBlock {
  double tokens = 1;
};
// Pre-norm transformer layers (norm, Q K V, attention, output, residual, norm, feed-forward, residual). query_tokens
// and key_tokens a layer (pyramids); empty = the input's tokens. The last `own_weight_tokens` tokens have weights of
// their own (OneTrans' non-sequential tokens).
struct TransformerBlock {
  int64_t layers = 1;
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t feed_forward_width = 0;
  std::vector<double> query_tokens;
  std::vector<double> key_tokens;
  double own_weight_tokens = 0;
  AttentionMask mask = AttentionMask::kCausal;
  double mean_square_ratio = 1;
  Activation activation = Activation::kGelu;
};
// HSTU layers (arXiv 2402.17152): norm, one UVQK projection with SiLU, pointwise attention, norm, gate by U, output
// projection of [U-gated, attention, input] (`output_inputs` tensors of heads x v_dim) and residual.
struct HstuBlock {
  int64_t layers = 1;
  int64_t heads = 1;
  int64_t qk_dim = 64;
  int64_t v_dim = 64;
  int64_t output_inputs = 3;
  AttentionMask mask = AttentionMask::kCausal;
  double mean_square_ratio = 1;
};

using BlockBody = std::variant<MlpBlock, ConcatBlock, DotInteractionBlock, CrossBlock, NormBlock, AddBlock,
                               PointwiseBlock, TokenLinearBlock, FactorizationBlock, SelectBlock, SliceBlock,
                               ReshapeBlock, TransformerBlock, HstuBlock>;

struct Block {
  std::string name;
  // Each input is a dense input, a feature group (index into groups) or an earlier block.
  struct Input {
    enum class Kind { kDense, kGroup, kBlock } kind = Kind::kDense;
    int index = 0;
  };
  std::vector<Input> inputs;
  BlockBody body;
  TensorShape shape;  // of the output; inferred
};

// Samples needed to reach the model's quality target when trained at a global batch.
struct SamplesToQuality {
  int64_t global_batch = 0;
  double samples = 0;
};

// Numeric features: [tokens, width] a sample. `dense_features: 13` in a file is one named "dense" of shape [1, 13].
struct DenseInput {
  std::string name;
  TensorShape shape;
};

struct Model {
  std::string id;
  std::string description;
  std::string source;
  std::vector<DenseInput> dense_inputs;
  std::vector<Table> tables;
  std::vector<Feature> features;
  std::vector<FeatureGroup> groups;
  std::vector<Block> blocks;  // in topological order; the last one is the output
  DenseOptimizer dense_optimizer = DenseOptimizer::kAdam;
  EmbeddingOptimizer embedding_optimizer = EmbeddingOptimizer::kRowwiseAdagrad;
  std::vector<SamplesToQuality> samples_to_quality;
  std::string published_recipe;  // name of the recipe that its publication trains it with; may be empty

  // Expected distinct rows that `samples` samples touch through one feature.
  double UniqueRows(const Feature& feature, double samples) const;
  TensorShape GroupShape(int group) const;
  TensorShape InputShape(const Block::Input& input) const;
  // Infers the shapes of all blocks again after a revision.
  Status InferShapes();
  // Numbers a sample over all dense inputs.
  double DenseElements() const;
};

// The YAML name of a block's type, for example "low_rank_cross".
const char* BlockTypeName(const BlockBody& body);
// Trainable parameters of a block.
double BlockParameters(const Model& model, const Block& block);
double DenseParameters(const Model& model);
double EmbeddingParameters(const Model& model);

// Reads and checks a model file: unknown keys, dangling or forward references, impossible shapes and numbers out of
// bounds are errors that name file, line, field, value and what would be accepted.
Result<Model> LoadModel(const std::string& path);
Result<Model> ReadModel(const YamlValue& value);

}  // namespace portolan
