#include "model/shapes.h"

#include <fmt/format.h>

#include <cmath>

namespace portolan {
namespace {

std::string Show(const TensorShape& shape) { return fmt::format("[{:g}, {:g}]", shape.tokens, shape.width); }

bool Near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

double RoundUp(double width, int64_t multiple) {
  const double m = static_cast<double>(multiple);
  return std::ceil(width / m - 1e-9) * m;
}

tl::unexpected<Error> ShapeError(const std::string& message) { return MakeError(ErrorCode::kInvalidValue, message); }

Result<TensorShape> OneInput(const char* type, const std::vector<TensorShape>& inputs) {
  if (inputs.size() != 1) return ShapeError(fmt::format("{} takes exactly one input, got {}", type, inputs.size()));
  return inputs[0];
}

struct Infer {
  const std::vector<TensorShape>& inputs;

  Result<TensorShape> operator()(const MlpBlock& mlp) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("mlp", inputs));
    if (mlp.groups > 1) {
      const double per_group = in.tokens / static_cast<double>(mlp.groups);
      if (std::abs(per_group - std::round(per_group)) > 1e-9 || per_group < 1) {
        return ShapeError(
            fmt::format("groups must divide the input's tokens, got groups {} for input {}", mlp.groups, Show(in)));
      }
    }
    return TensorShape{in.tokens, static_cast<double>(mlp.widths.back())};
  }
  Result<TensorShape> operator()(const ConcatBlock& concat) const {
    if (inputs.empty()) return ShapeError("concat needs at least one input");
    TensorShape out{1, 0};
    if (concat.axis == ConcatAxis::kWidth) {
      for (const TensorShape& in : inputs) out.width += in.elements();
      out.width = RoundUp(out.width, concat.pad_multiple);
      return out;
    }
    out = {0, inputs[0].width};
    for (const TensorShape& in : inputs) {
      if (!Near(in.width, out.width)) {
        return ShapeError(
            fmt::format("inputs joined along tokens need one width, got {} and {}", Show(inputs[0]), Show(in)));
      }
      out.tokens += in.tokens;
    }
    return out;
  }
  Result<TensorShape> operator()(const DotInteractionBlock& interaction) const {
    if (inputs.size() < 2) return ShapeError("dot_interaction needs a dense input and at least one embedding group");
    const double dim = inputs[0].width;
    double features = 0;
    for (const TensorShape& in : inputs) {
      if (!Near(in.width, dim)) {
        return ShapeError(
            fmt::format("dot_interaction needs vectors of one width, got {} and {}", Show(inputs[0]), Show(in)));
      }
      features += in.tokens;
    }
    return TensorShape{1, RoundUp(dim + features * (features - 1) / 2, interaction.pad_multiple)};
  }
  Result<TensorShape> operator()(const CrossBlock&) const { return OneInput("low_rank_cross", inputs); }
  Result<TensorShape> operator()(const NormBlock&) const { return OneInput("norm", inputs); }
  Result<TensorShape> operator()(const AddBlock&) const {
    if (inputs.size() < 2) return ShapeError("add needs at least two inputs");
    for (const TensorShape& in : inputs) {
      if (!Near(in.tokens, inputs[0].tokens) || !Near(in.width, inputs[0].width)) {
        return ShapeError(fmt::format("add needs inputs of one shape, got {} and {}", Show(inputs[0]), Show(in)));
      }
    }
    return inputs[0];
  }
  Result<TensorShape> operator()(const PointwiseBlock&) const { return OneInput("pointwise", inputs); }
  Result<TensorShape> operator()(const TokenLinearBlock& linear) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("token_linear", inputs));
    return TensorShape{static_cast<double>(linear.out_tokens), in.width};
  }
  Result<TensorShape> operator()(const FactorizationBlock& fm) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("factorization", inputs));
    return TensorShape{1, in.tokens * static_cast<double>(fm.rank)};
  }
  Result<TensorShape> operator()(const SelectBlock& select) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("select", inputs));
    if (select.tokens > in.tokens * (1 + 1e-9)) {
      return ShapeError(
          fmt::format("tokens must be at most the input's, got {:g} for input {}", select.tokens, Show(in)));
    }
    return TensorShape{select.tokens, in.width};
  }
  Result<TensorShape> operator()(const SliceBlock& slice) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("slice", inputs));
    if (static_cast<double>(slice.offset + slice.width) > in.width) {
      return ShapeError(fmt::format("offset + width must be at most the input's width, got {} + {} for input {}",
                                    slice.offset, slice.width, Show(in)));
    }
    return TensorShape{in.tokens, static_cast<double>(slice.width)};
  }
  Result<TensorShape> operator()(const ReshapeBlock& reshape) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("reshape", inputs));
    const double width = in.elements() / reshape.tokens;
    if (std::abs(width - std::round(width)) > 1e-6 * width || width < 1) {
      return ShapeError(
          fmt::format("tokens must divide the input's {:g} elements, got {:g}", in.elements(), reshape.tokens));
    }
    return TensorShape{reshape.tokens, std::round(width)};
  }
  Result<TensorShape> operator()(const TransformerBlock& transformer) const {
    PORTOLAN_ASSIGN_OR_RETURN(const TensorShape in, OneInput("transformer", inputs));
    double available = in.tokens;
    for (size_t layer = 0; layer < transformer.query_tokens.size(); ++layer) {
      const double query = transformer.query_tokens[layer];
      const double key = transformer.key_tokens.empty() ? available : transformer.key_tokens[layer];
      if (query > available * (1 + 1e-9) || key > available * (1 + 1e-9)) {
        return ShapeError(
            fmt::format("layer {} has {:g} tokens, so query_tokens and key_tokens must be at most that; "
                        "got {:g} and {:g}",
                        layer, available, query, key));
      }
      available = query;
    }
    if (transformer.own_weight_tokens > available) {
      return ShapeError(fmt::format("own_weight_tokens must be at most the tokens of the last layer ({:g}), got {:g}",
                                    available, transformer.own_weight_tokens));
    }
    return TensorShape{available, in.width};
  }
  Result<TensorShape> operator()(const HstuBlock&) const { return OneInput("hstu", inputs); }
};

}  // namespace

Result<TensorShape> InferShape(const BlockBody& body, const std::vector<TensorShape>& inputs) {
  return std::visit(Infer{inputs}, body);
}

}  // namespace portolan
