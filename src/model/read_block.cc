#include "model/read_block.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/yaml_enum.h"

namespace portolan {
namespace {

constexpr NamedValue<Activation> kActivations[] = {{"none", Activation::kNone},
                                                   {"relu", Activation::kRelu},
                                                   {"gelu", Activation::kGelu},
                                                   {"silu", Activation::kSilu},
                                                   {"sigmoid", Activation::kSigmoid}};
constexpr NamedValue<ConcatAxis> kAxes[] = {{"width", ConcatAxis::kWidth}, {"tokens", ConcatAxis::kTokens}};
constexpr NamedValue<AttentionMask> kMasks[] = {{"none", AttentionMask::kNone}, {"causal", AttentionMask::kCausal}};
constexpr Range kLayers{1, 1000};  // of one block
constexpr Range kSmallCount{1, 65536};

std::vector<double> Numbers(YamlMap& map, const std::string& key, Range range, size_t max_count) {
  std::vector<double> numbers;
  for (const YamlValue& element : map.Elements(key)) {
    Result<double> number = element.Number(range);
    if (!number) {
      map.Fail(number.error());
      return {};
    }
    if (numbers.size() == max_count) {
      map.Fail(element.MakeError(ErrorCode::kInvalidValue, fmt::format("at most {} elements are accepted", max_count)));
      return {};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

Result<BlockBody> ReadBlockBody(const std::string& type, YamlMap& map, const YamlValue& place) {
  if (type == "mlp") {
    MlpBlock mlp;
    for (const double width : Numbers(map, "widths", kWidth, 1000)) {
      if (width != static_cast<double>(static_cast<int64_t>(width))) {
        return place.MakeError(ErrorCode::kInvalidValue, fmt::format("widths must be whole numbers, got {:g}", width));
      }
      mlp.widths.push_back(static_cast<int64_t>(width));
    }
    mlp.activation = ReadEnum(map, "activation", kActivations, Activation::kRelu);
    mlp.last_activation = ReadEnum(map, "last_activation", kActivations, mlp.activation);
    mlp.groups = map.Integer("groups", kSmallCount, 1);
    mlp.layer_norm = map.Bool("layer_norm", false);
    return mlp;
  }
  if (type == "concat") {
    return ConcatBlock{ReadEnum(map, "axis", kAxes, ConcatAxis::kWidth), map.Integer("pad_multiple", kSmallCount, 1)};
  }
  if (type == "dot_interaction") return DotInteractionBlock{map.Integer("pad_multiple", kSmallCount, 1)};
  if (type == "slice") {
    SliceBlock slice;
    slice.offset = map.Integer("offset", {0, 1e7}, 0);
    slice.width = map.Integer("width", kWidth);
    return slice;
  }
  if (type == "low_rank_cross") {
    CrossBlock cross;
    cross.layers = map.Integer("layers", kLayers);
    cross.rank = map.Integer("rank", {0, 1e6}, 0);
    return cross;
  }
  if (type == "norm") return NormBlock{};
  if (type == "add") return AddBlock{};
  if (type == "pointwise") {
    PointwiseBlock pointwise;
    pointwise.forward_passes = map.Number("forward_passes", {0, 1000}, 2.0);
    pointwise.backward_passes = map.Number("backward_passes", {0, 1000}, 3.0);
    return pointwise;
  }
  if (type == "token_linear") return TokenLinearBlock{map.Integer("out_tokens", kSmallCount)};
  if (type == "factorization") return FactorizationBlock{map.Integer("rank", kSmallCount)};
  if (type == "select") return SelectBlock{map.Number("tokens", kTokens)};
  if (type == "reshape") return ReshapeBlock{map.Number("tokens", kTokens)};
  if (type == "transformer") {
    TransformerBlock transformer;
    transformer.layers = map.Integer("layers", kLayers);
    transformer.heads = map.Integer("heads", kSmallCount);
    transformer.head_dim = map.Integer("head_dim", kSmallCount);
    transformer.feed_forward_width = map.Integer("feed_forward_width", {0, 1e7}, 0);
    transformer.query_tokens = Numbers(map, "query_tokens", kTokens, 1000);
    transformer.key_tokens = Numbers(map, "key_tokens", kTokens, 1000);
    transformer.own_weight_tokens = map.Number("own_weight_tokens", {0, 1e6}, 0.0);
    transformer.mask = ReadEnum(map, "mask", kMasks, AttentionMask::kCausal);
    transformer.mean_square_ratio = map.Number("mean_square_ratio", {1, 1000}, 1.0);
    transformer.activation = ReadEnum(map, "activation", kActivations, Activation::kGelu);
    const size_t layers = static_cast<size_t>(transformer.layers);
    for (const auto* tokens : {&transformer.query_tokens, &transformer.key_tokens}) {
      if (map.ok() && !tokens->empty() && tokens->size() != layers) {
        return place.MakeError(
            ErrorCode::kInvalidValue,
            fmt::format("query_tokens and key_tokens need one number a layer ({}), got {}", layers, tokens->size()));
      }
    }
    return transformer;
  }
  if (type == "hstu") {
    HstuBlock hstu;
    hstu.layers = map.Integer("layers", kLayers);
    hstu.heads = map.Integer("heads", kSmallCount);
    hstu.qk_dim = map.Integer("qk_dim", kSmallCount);
    hstu.v_dim = map.Integer("v_dim", kSmallCount);
    hstu.output_inputs = map.Integer("output_inputs", {1, 3}, 3);
    hstu.mask = ReadEnum(map, "mask", kMasks, AttentionMask::kCausal);
    hstu.mean_square_ratio = map.Number("mean_square_ratio", {1, 1000}, 1.0);
    return hstu;
  }
  PORTOLAN_CHECK(false, "block type accepted but not read");
}

int64_t LayersOf(const BlockBody& body) {
  if (const auto* mlp = std::get_if<MlpBlock>(&body)) return static_cast<int64_t>(mlp->widths.size());
  if (const auto* cross = std::get_if<CrossBlock>(&body)) return cross->layers;
  if (const auto* transformer = std::get_if<TransformerBlock>(&body)) return transformer->layers;
  if (const auto* hstu = std::get_if<HstuBlock>(&body)) return hstu->layers;
  return 1;
}

}  // namespace portolan
