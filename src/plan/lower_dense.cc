#include <algorithm>

#include "plan/graph_builder.h"

namespace portolan {
namespace {

// Forward of each block type. `in` are the per-sample input shapes; b.local_batch samples.
struct Forward {
  GraphBuilder& b;
  const Block& block;
  std::vector<int> after;
  double* saved;

  TensorShape In(size_t i) const { return b.model.InputShape(block.inputs[i]); }
  double Bytes(const TensorShape& shape) const { return b.local_batch * shape.elements() * b.ActivationBytes(); }
  double OutBytes() const { return Bytes(block.shape); }
  double InBytes() const {
    double total = 0;
    for (size_t i = 0; i < block.inputs.size(); ++i) total += Bytes(In(i));
    return total;
  }

  int operator()(const MlpBlock& mlp) {
    double width = In(0).width;
    const double samples = b.local_batch * In(0).tokens / static_cast<double>(mlp.groups);
    const double groups = static_cast<double>(mlp.groups);
    int last = -1;
    for (size_t layer = 0; layer < mlp.widths.size(); ++layer) {
      const double out = static_cast<double>(mlp.widths[layer]);
      const bool is_last = layer + 1 == mlp.widths.size();
      const bool active = (is_last ? mlp.last_activation : mlp.activation) != Activation::kNone;
      const bool fused = b.recipe.fusion == Fusion::kFull;
      const std::string name = block.name + "." + std::to_string(layer);
      last = b.OwnWeightGemm(name, samples, out, width, GemmLayout::kTN,
                             active && fused ? GemmEpilogue::kBiasActivation : GemmEpilogue::kBias,
                             last < 0 ? after : std::vector<int>{last}, groups);
      const double bytes = samples * groups * out * b.ActivationBytes();
      if (mlp.layer_norm) {
        last = b.Pointwise(name + ".norm", bytes, bytes, {last});
        *saved += bytes;
      }
      if (active && !fused) {
        last = b.Pointwise(name + ".activation", bytes, bytes, {last});
        *saved += bytes;
      }
      *saved += bytes;
      width = out;
    }
    return last;
  }
  int operator()(const ConcatBlock&) {
    *saved += OutBytes();
    return b.Pointwise(block.name, InBytes(), OutBytes(), after);
  }
  int operator()(const DotInteractionBlock&) {
    double features = 0;
    for (size_t i = 0; i < block.inputs.size(); ++i) features += In(i).tokens;
    if (b.recipe.fusion != Fusion::kFull) {
      after = {b.Pointwise(block.name + ".concat", InBytes(), InBytes(), after)};
      *saved += InBytes();
    }
    *saved += OutBytes();
    DotInteractionShape shape;
    shape.batch = std::max<int64_t>(1, static_cast<int64_t>(b.local_batch));
    shape.features = static_cast<int64_t>(features);
    shape.dim = static_cast<int64_t>(In(0).width);
    shape.dtype = b.recipe.activation;
    int last =
        b.Add(block.name, Category::kElementwise, Stream::kMain, DotInteractionForwardEstimate(shape, b.chip), after);
    if (b.recipe.fusion == Fusion::kEager) {  // lower triangle gathered, then concatenated with the dense vector
      const double products = b.local_batch * features * features * b.ActivationBytes();
      last = b.Pointwise(block.name + ".gather", products, OutBytes(), {last});
      last = b.Pointwise(block.name + ".join", OutBytes(), OutBytes(), {last});
    }
    return last;
  }
  int operator()(const CrossBlock& cross) {
    int last = -1;
    const TensorShape in = In(0);
    const double samples = b.local_batch * in.tokens;
    const double wide = samples * in.width * b.ActivationBytes();
    for (int64_t layer = 0; layer < cross.layers; ++layer) {
      const std::string name = block.name + "." + std::to_string(layer);
      std::vector<int> start = last < 0 ? after : std::vector<int>{last};
      if (cross.rank > 0) {
        const double rank = static_cast<double>(cross.rank);
        last = b.Gemm(name + ".v", samples, rank, in.width, GemmLayout::kTN, GemmEpilogue::kNone, std::move(start));
        last = b.Gemm(name + ".u", samples, in.width, rank, GemmLayout::kTN, GemmEpilogue::kBias, {last});
        *saved += samples * rank * b.ActivationBytes();
      } else {
        last = b.Gemm(name + ".w", samples, in.width, in.width, GemmLayout::kTN, GemmEpilogue::kBias, std::move(start));
      }
      if (b.recipe.fusion == Fusion::kEager) {
        last = b.Pointwise(name + ".multiply", 2 * wide, wide, {last});
        last = b.Pointwise(name + ".add", 2 * wide, wide, {last});
      } else {
        last = b.Pointwise(name + ".combine", 3 * wide, wide, {last});
      }
      *saved += 2 * wide;
    }
    return last;
  }
  int operator()(const NormBlock&) {
    *saved += OutBytes();
    return b.Pointwise(block.name, InBytes(), OutBytes(), after);
  }
  int operator()(const AddBlock&) { return b.Pointwise(block.name, InBytes(), OutBytes(), after); }
  int operator()(const PointwiseBlock& pointwise) {
    *saved += OutBytes();
    const double written = std::min(1.0, pointwise.forward_passes);
    return b.Pointwise(block.name, (pointwise.forward_passes - written) * InBytes(), written * OutBytes(), after);
  }
  int operator()(const TokenLinearBlock& linear) {
    *saved += OutBytes();
    return b.Gemm(block.name, static_cast<double>(linear.out_tokens), In(0).width, In(0).tokens, GemmLayout::kNN,
                  GemmEpilogue::kNone, after, b.local_batch);
  }
  int operator()(const FactorizationBlock& fm) {
    const double rank = static_cast<double>(fm.rank);
    *saved += OutBytes() + b.local_batch * In(0).width * rank * b.ActivationBytes();
    const int project = b.Gemm(block.name + ".project", In(0).width, rank, In(0).tokens, GemmLayout::kNT,
                               GemmEpilogue::kNone, after, b.local_batch);
    return b.Gemm(block.name, In(0).tokens, rank, In(0).width, GemmLayout::kNN, GemmEpilogue::kNone, {project},
                  b.local_batch);
  }
  int operator()(const SelectBlock&) { return b.Pointwise(block.name, OutBytes(), OutBytes(), after); }
  int operator()(const SliceBlock&) { return after.empty() ? -1 : after.back(); }
  int operator()(const ReshapeBlock&) { return after.empty() ? -1 : after.back(); }
  int operator()(const TransformerBlock& body) {
    return LowerTransformerForward(b, block, body, std::move(after), saved);
  }
  int operator()(const HstuBlock& body) { return LowerHstuForward(b, block, body, std::move(after), saved); }
};

struct Backward {
  GraphBuilder& b;
  const Block& block;
  std::vector<int> after;
  InputGradient input_gradient;

  TensorShape In(size_t i) const { return b.model.InputShape(block.inputs[i]); }
  double Bytes(const TensorShape& shape) const { return b.local_batch * shape.elements() * b.ActivationBytes(); }
  double OutBytes() const { return Bytes(block.shape); }
  double InBytes() const {
    double total = 0;
    for (size_t i = 0; i < block.inputs.size(); ++i) total += Bytes(In(i));
    return total;
  }

  int operator()(const MlpBlock& mlp) {
    const double samples = b.local_batch * In(0).tokens / static_cast<double>(mlp.groups);
    const double groups = static_cast<double>(mlp.groups);
    const bool fused = b.recipe.fusion == Fusion::kFull;
    std::vector<int> start = after;
    int last = -1;
    for (size_t layer = mlp.widths.size(); layer-- > 0;) {
      const double out = static_cast<double>(mlp.widths[layer]);
      const double width = layer == 0 ? In(0).width : static_cast<double>(mlp.widths[layer - 1]);
      const bool is_last = layer + 1 == mlp.widths.size();
      const bool active = (is_last ? mlp.last_activation : mlp.activation) != Activation::kNone;
      const std::string name = block.name + "." + std::to_string(layer);
      const double bytes = samples * groups * out * b.ActivationBytes();
      // Fused, the activation's gradient of inner layers is an epilogue of the layer above.
      if (active && (!fused || is_last)) start = {b.Pointwise(name + ".activation_grad", 2 * bytes, bytes, start)};
      if (mlp.layer_norm) start = {b.Pointwise(name + ".norm_grad", 2 * bytes, bytes, start)};
      if (!fused) start = {b.Pointwise(name + ".bias_grad", bytes, 4 * out * groups, start)};
      last = start.empty() ? -1 : start[0];
      if (layer > 0 || input_gradient == InputGradient::kNeeded) {
        last = b.OwnWeightGemm(name + ".dgrad", samples, width, out, GemmLayout::kNN,
                               fused && layer > 0 ? GemmEpilogue::kActivationGradient : GemmEpilogue::kNone, start,
                               groups);
        start = {last};
      }
      last = b.OwnWeightGemm(name + ".wgrad", out, width, samples, GemmLayout::kNT, GemmEpilogue::kNone, start, groups);
    }
    return last;
  }
  int operator()(const ConcatBlock&) { return b.Pointwise(block.name + ".grad", OutBytes(), InBytes(), after); }
  int operator()(const DotInteractionBlock&) {
    double features = 0;
    for (size_t i = 0; i < block.inputs.size(); ++i) features += In(i).tokens;
    if (b.recipe.fusion == Fusion::kEager) {
      const double products = b.local_batch * features * features * b.ActivationBytes();
      after = {b.Pointwise(block.name + ".scatter", OutBytes(), products, after)};
    }
    DotInteractionShape shape;
    shape.batch = std::max<int64_t>(1, static_cast<int64_t>(b.local_batch));
    shape.features = static_cast<int64_t>(features);
    shape.dim = static_cast<int64_t>(In(0).width);
    shape.dtype = b.recipe.activation;
    int last = b.Add(block.name + ".grad", Category::kElementwise, Stream::kMain,
                     DotInteractionBackwardEstimate(shape, b.chip), after);
    if (b.recipe.fusion != Fusion::kFull) last = b.Pointwise(block.name + ".split", InBytes(), InBytes(), {last});
    return last;
  }
  int operator()(const CrossBlock& cross) {
    const TensorShape in = In(0);
    const double samples = b.local_batch * in.tokens;
    const double wide = samples * in.width * b.ActivationBytes();
    std::vector<int> start = after;
    int last = -1;
    for (int64_t layer = cross.layers; layer-- > 0;) {
      const std::string name = block.name + "." + std::to_string(layer);
      if (b.recipe.fusion == Fusion::kEager) {
        last = b.Pointwise(name + ".u_grad", 2 * wide, wide, start);
        last = b.Pointwise(name + ".x0_grad", 2 * wide, wide, {last});
        last = b.Pointwise(name + ".x0_sum", 2 * wide, wide, {last});
        last = b.Pointwise(name + ".bias_grad", wide, 4 * in.width, {last});
      } else {
        last = b.Pointwise(name + ".combine_grad", 4 * wide, 2 * wide, start);
      }
      if (cross.rank > 0) {
        const double rank = static_cast<double>(cross.rank);
        last = b.Gemm(name + ".u.dgrad", samples, rank, in.width, GemmLayout::kNN, GemmEpilogue::kNone, {last});
        const int inner = last;
        last = b.Gemm(name + ".v.dgrad", samples, in.width, rank, GemmLayout::kNN, GemmEpilogue::kAdd, {last});
        b.Gemm(name + ".u.wgrad", in.width, rank, samples, GemmLayout::kNT, GemmEpilogue::kNone, {inner});
        b.Gemm(name + ".v.wgrad", rank, in.width, samples, GemmLayout::kNT, GemmEpilogue::kNone, {inner});
      } else {
        b.Gemm(name + ".wgrad", in.width, in.width, samples, GemmLayout::kNT, GemmEpilogue::kNone, {last});
        last = b.Gemm(name + ".dgrad", samples, in.width, in.width, GemmLayout::kNN, GemmEpilogue::kAdd, {last});
      }
      start = {last};
    }
    return b.Pointwise(block.name + ".x0_add", 2 * wide, wide, {last});
  }
  int operator()(const NormBlock&) { return b.Pointwise(block.name + ".grad", 2 * OutBytes(), InBytes(), after); }
  int operator()(const AddBlock&) { return after.empty() ? -1 : after.back(); }
  int operator()(const PointwiseBlock& pointwise) {
    const double written = std::min(1.0, pointwise.backward_passes);
    return b.Pointwise(block.name + ".grad", (pointwise.backward_passes - written) * OutBytes(), written * InBytes(),
                       after);
  }
  int operator()(const TokenLinearBlock& linear) {
    const double out = static_cast<double>(linear.out_tokens);
    const int dgrad = b.Gemm(block.name + ".dgrad", In(0).tokens, In(0).width, out, GemmLayout::kNN,
                             GemmEpilogue::kNone, after, b.local_batch);
    return b.Gemm(block.name + ".wgrad", out, In(0).tokens, In(0).width * b.local_batch, GemmLayout::kNT,
                  GemmEpilogue::kNone, {dgrad});
  }
  int operator()(const FactorizationBlock& fm) {
    const double rank = static_cast<double>(fm.rank);
    int last = -1;
    for (const char* part : {".outer", ".project_grad"}) {
      last = b.Gemm(block.name + part, In(0).tokens, In(0).width, rank, GemmLayout::kNT, GemmEpilogue::kNone,
                    last < 0 ? after : std::vector<int>{last}, b.local_batch);
      last = b.Gemm(block.name + part + "_y", In(0).tokens, rank, In(0).width, GemmLayout::kNN, GemmEpilogue::kNone,
                    {last}, b.local_batch);
    }
    return last;
  }
  int operator()(const SelectBlock&) { return b.Pointwise(block.name + ".grad", OutBytes(), InBytes(), after); }
  int operator()(const SliceBlock&) { return after.empty() ? -1 : after.back(); }
  int operator()(const ReshapeBlock&) { return after.empty() ? -1 : after.back(); }
  int operator()(const TransformerBlock& body) { return LowerTransformerBackward(b, block, body, std::move(after)); }
  int operator()(const HstuBlock& body) { return LowerHstuBackward(b, block, body, std::move(after)); }
};

}  // namespace

int LowerForward(GraphBuilder& builder, const Block& block, std::vector<int> after, double* saved_bytes) {
  builder.gemm = builder.recipe.GemmOf(block.name);
  return std::visit(Forward{builder, block, std::move(after), saved_bytes}, block.body);
}

int LowerBackward(GraphBuilder& builder, const Block& block, std::vector<int> after, InputGradient input_gradient) {
  builder.gemm = builder.recipe.GemmOf(block.name);
  return std::visit(Backward{builder, block, std::move(after), input_gradient}, block.body);
}

}  // namespace portolan
