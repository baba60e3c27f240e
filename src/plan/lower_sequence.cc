#include <algorithm>

#include "plan/graph_builder.h"

namespace portolan {
namespace {

// Sizes of one transformer layer on one device.
struct TransformerLayer {
  double query = 0, key = 0;  // tokens of the local batch, shared and own-weight ones together
  double own = 0;             // own-weight tokens a sample
  double width = 0, inner = 0, hidden = 0;
  double act = 2, norm = 4;  // bytes of an element: GEMM operands; residual stream and norms
  AttentionShape attention;
};

TransformerLayer LayerAt(const GraphBuilder& b, const Block& block, const TransformerBlock& body, int64_t layer) {
  const TensorShape in = b.model.InputShape(block.inputs[0]);
  const size_t at = static_cast<size_t>(layer);
  double query = in.tokens;
  double key = in.tokens;
  if (!body.query_tokens.empty()) {
    query = body.query_tokens[at];
    key = at == 0 ? in.tokens : body.query_tokens[at - 1];
  }
  if (!body.key_tokens.empty()) key = body.key_tokens[at];
  TransformerLayer l;
  l.query = b.local_batch * query;
  l.key = b.local_batch * key;
  l.own = body.own_weight_tokens;
  l.width = in.width;
  l.inner = static_cast<double>(body.heads * body.head_dim);
  l.hidden = static_cast<double>(body.feed_forward_width);
  l.act = b.ActivationBytes();
  l.norm = b.NormBytes();
  l.attention.kind = AttentionKind::kSoftmax;
  l.attention.mask = body.mask;
  l.attention.sequences = b.local_batch;
  l.attention.query_length = query;
  l.attention.key_length = key;
  l.attention.mean_square_ratio = body.mean_square_ratio;
  l.attention.heads = body.heads;
  l.attention.qk_dim = body.head_dim;
  l.attention.v_dim = body.head_dim;
  l.attention.dtype = b.recipe.activation;
  return l;
}

// y = x W over `tokens` of the batch, of which `own` a sample have weights of their own: one GEMM for the shared
// weights and one batched GEMM for the rest.
int Projection(GraphBuilder& b, const std::string& name, double tokens, double own, double out, double in,
               std::vector<int> after) {
  const double shared = std::max(0.0, tokens - own * b.local_batch);
  int last = shared > 0 ? b.Gemm(name, shared, out, in, GemmLayout::kTN, GemmEpilogue::kNone, after) : -1;
  if (own > 0) {
    last = b.OwnWeightGemm(name + ".own", b.local_batch, out, in, GemmLayout::kTN, GemmEpilogue::kNone,
                           last < 0 ? after : std::vector<int>{last}, own);
  }
  return last;
}

int ProjectionGrad(GraphBuilder& b, const std::string& name, double tokens, double own, double out, double in,
                   std::vector<int> after) {
  const double shared = std::max(0.0, tokens - own * b.local_batch);
  std::vector<int> start = std::move(after);
  int last = start.empty() ? -1 : start.back();
  if (shared > 0) {
    last = b.Gemm(name + ".dgrad", shared, in, out, GemmLayout::kNN, GemmEpilogue::kNone, start);
    last = b.Gemm(name + ".wgrad", out, in, shared, GemmLayout::kNT, GemmEpilogue::kNone, {last});
    start = {last};
  }
  if (own > 0) {
    last =
        b.OwnWeightGemm(name + ".own.dgrad", b.local_batch, in, out, GemmLayout::kNN, GemmEpilogue::kNone, start, own);
    last =
        b.OwnWeightGemm(name + ".own.wgrad", out, in, b.local_batch, GemmLayout::kNT, GemmEpilogue::kNone, {last}, own);
  }
  return last;
}

enum class Pass { kForward, kBackward };
int Attention(GraphBuilder& b, const std::string& name, const AttentionShape& shape, Pass pass,
              std::vector<int> after) {
  const Estimate estimate = pass == Pass::kBackward ? AttentionBackwardEstimate(shape, b.chip, b.recipe.attention)
                                                    : AttentionForwardEstimate(shape, b.chip, b.recipe.attention);
  return b.Add(name, Category::kAttention, Stream::kMain, estimate, std::move(after));
}

// Sizes of an HSTU layer on one device; all layers are alike.
struct HstuSizes {
  double tokens = 0, width = 0;
  double v = 0, uvqk = 0, out_width = 0;  // columns: one of U and V; U V Q K; the output product's input
  double act = 2;
  AttentionShape attention;
};

HstuSizes SizesOf(const GraphBuilder& b, const Block& block, const HstuBlock& body) {
  const TensorShape in = b.model.InputShape(block.inputs[0]);
  HstuSizes h;
  h.tokens = b.local_batch * in.tokens;
  h.width = in.width;
  h.v = static_cast<double>(body.heads * body.v_dim);
  h.uvqk = 2 * h.v + 2 * static_cast<double>(body.heads * body.qk_dim);
  h.out_width = static_cast<double>(body.output_inputs) * h.v;
  h.act = b.ActivationBytes();
  h.attention.kind = AttentionKind::kHstuSilu;
  h.attention.mask = body.mask;
  h.attention.sequences = b.local_batch;
  h.attention.query_length = h.attention.key_length = in.tokens;
  h.attention.mean_square_ratio = body.mean_square_ratio;
  h.attention.heads = body.heads;
  h.attention.qk_dim = body.qk_dim;
  h.attention.v_dim = body.v_dim;
  h.attention.dtype = b.recipe.activation;
  return h;
}

}  // namespace

// Pre-norm layer. Passes over whole tensors as a graph compiler leaves them (torch.compile's generated kernels for
// OneTrans' public implementation, AMD-AGI/Primus-DLRM, counted 2026-11-30: 11 k + 21 q forward, 13 k + 33 q backward
// in 16-bit passes over key rows k and query rows q with an fp32 residual stream): norms read their rows twice
// (statistics, then values), residual additions join the norm that follows, products of shared and own-weight tokens
// are joined by copies. kFull fuses the statistics and the weight gradients of the norms; kEager is scaled by
// GraphBuilder.
int LowerTransformerForward(GraphBuilder& b, const Block& block, const TransformerBlock& body, std::vector<int> after,
                            double* saved_bytes) {
  const double statistics = b.recipe.fusion == Fusion::kFull ? 0 : 1;
  int last = -1;
  for (int64_t i = 0; i < body.layers; ++i) {
    const TransformerLayer l = LayerAt(b, block, body, i);
    const std::string name = block.name + "." + std::to_string(i);
    const double key_residual = l.key * l.width * l.norm;
    const double key_narrow = l.key * l.width * l.act;
    const double residual = l.query * l.width * l.norm;
    const double narrow = l.query * l.width * l.act;
    const double qkv = 3 * l.key * l.inner * l.act;
    std::vector<int> start = last < 0 ? after : std::vector<int>{last};
    last = b.Pointwise(name + ".norm1", (1 + statistics) * key_residual, key_narrow, std::move(start));
    last = Projection(b, name + ".qkv", l.key, l.own, 3 * l.inner, l.width, {last});
    if (l.own > 0) last = b.Pointwise(name + ".qkv_join", qkv, qkv, {last});
    last = Attention(b, name + ".attention", l.attention, Pass::kForward, {last});
    last = b.Gemm(name + ".o", l.query, l.width, l.inner, GemmLayout::kTN, GemmEpilogue::kNone, {last});
    last = b.Pointwise(name + ".residual1_norm2", (1 + statistics) * (residual + narrow), narrow, {last});
    double saved = key_narrow + qkv + l.query * l.inner * l.act + residual + narrow;
    if (l.hidden > 0) {
      const double hidden = l.query * l.hidden * l.act;
      last = Projection(b, name + ".ffn1", l.query, l.own, l.hidden, l.width, {last});
      last = b.Pointwise(name + ".activation", hidden, hidden, {last});
      last = Projection(b, name + ".ffn2", l.query, l.own, l.width, l.hidden, {last});
      saved += b.recipe.recompute == Recompute::kCheap ? hidden : 2 * hidden;
    }
    // The residual sum of the first half is computed again rather than stored.
    last = b.Pointwise(name + ".residual2", 2 * narrow + residual, residual, {last});
    *saved_bytes += saved + key_residual;
  }
  return last;
}

int LowerTransformerBackward(GraphBuilder& b, const Block& block, const TransformerBlock& body,
                             std::vector<int> after) {
  const double separate_weight_gradients = b.recipe.fusion == Fusion::kFull ? 0 : 1;
  int last = -1;
  for (int64_t i = body.layers; i-- > 0;) {
    const TransformerLayer l = LayerAt(b, block, body, i);
    const std::string name = block.name + "." + std::to_string(i);
    const double key_residual = l.key * l.width * l.norm;
    const double key_narrow = l.key * l.width * l.act;
    const double residual = l.query * l.width * l.norm;
    const double narrow = l.query * l.width * l.act;
    const double hidden = l.query * l.hidden * l.act;
    std::vector<int> start = last < 0 ? after : std::vector<int>{last};
    last = b.Pointwise(name + ".residual2_grad", residual, narrow, std::move(start));
    if (l.hidden > 0) {
      if (l.own > 0) last = b.Pointwise(name + ".split", narrow, narrow, {last});
      if (b.recipe.recompute == Recompute::kCheap) last = b.Pointwise(name + ".activation", hidden, hidden, {last});
      last = ProjectionGrad(b, name + ".ffn2", l.query, l.own, l.width, l.hidden, {last});
      last = b.Pointwise(name + ".activation_grad", 2 * hidden, hidden, {last});
      last = ProjectionGrad(b, name + ".ffn1", l.query, l.own, l.hidden, l.width, {last});
    }
    const double norm2_inputs = 2 * narrow + residual;  // its gradient and the two addends of its input
    last = b.Pointwise(name + ".norm2_grad", norm2_inputs + residual + separate_weight_gradients * norm2_inputs,
                       residual + narrow, {last});
    last = b.Gemm(name + ".o.dgrad", l.query, l.inner, l.width, GemmLayout::kNN, GemmEpilogue::kNone, {last});
    last = b.Gemm(name + ".o.wgrad", l.width, l.inner, l.query, GemmLayout::kNT, GemmEpilogue::kNone, {last});
    last = Attention(b, name + ".attention_grad", l.attention, Pass::kBackward, {last});
    const double inner = l.inner * l.act;
    last = b.Pointwise(name + ".qkv_grad_join", (l.query + 2 * l.key) * inner, 3 * l.key * inner, {last});
    last = ProjectionGrad(b, name + ".qkv", l.key, l.own, 3 * l.inner, l.width, {last});
    const double norm1_inputs = key_narrow + key_residual;
    last = b.Pointwise(name + ".norm1_grad", norm1_inputs + residual + separate_weight_gradients * norm1_inputs,
                       key_residual, {last});
  }
  return last;
}

// As the public Triton kernels do it (meta-recsys/generative-recommenders; passes counted 2026-11-30: 12 forward, 26.5
// backward with recomputation, in 16-bit passes over [tokens, width]): norm; one UVQK product; SiLU of U; attention;
// norm of the attention times U with dropout (a byte mask), concatenated with U and the normed attention; output
// product onto a copy of the residual.
int LowerHstuForward(GraphBuilder& b, const Block& block, const HstuBlock& body, std::vector<int> after,
                     double* saved_bytes) {
  const HstuSizes h = SizesOf(b, block, body);
  const bool cheap = b.recipe.recompute == Recompute::kCheap;
  const double width = h.tokens * h.width * h.act;
  const double v = h.tokens * h.v * h.act;
  const double gated = h.tokens * h.out_width * h.act;
  const double mask = h.tokens * h.v;  // bytes
  int last = -1;
  for (int64_t i = 0; i < body.layers; ++i) {
    const std::string name = block.name + "." + std::to_string(i);
    std::vector<int> start = last < 0 ? after : std::vector<int>{last};
    last = b.Pointwise(name + ".norm", width, width, std::move(start));
    last = b.Gemm(name + ".uvqk", h.tokens, h.uvqk, h.width, GemmLayout::kTN, GemmEpilogue::kBias, {last});
    last = b.Pointwise(name + ".silu", v, v, {last});
    last = Attention(b, name + ".attention", h.attention, Pass::kForward, {last});
    last = b.Pointwise(name + ".norm_gate", 2 * v + mask, gated + mask, {last});
    if (b.recipe.fusion != Fusion::kFull) last = b.Pointwise(name + ".residual_copy", width, width, {last});
    last = b.Gemm(name + ".output", h.tokens, h.width, h.out_width, GemmLayout::kTN, GemmEpilogue::kAdd, {last});
    // Input, attention, SiLU of U and mask; without recomputation also the normed input, UVQK and the gated output.
    *saved_bytes += width + 2 * v + mask + (cheap ? 0.0 : width + h.tokens * h.uvqk * h.act + gated);
  }
  return last;
}

int LowerHstuBackward(GraphBuilder& b, const Block& block, const HstuBlock& body, std::vector<int> after) {
  const HstuSizes h = SizesOf(b, block, body);
  const bool cheap = b.recipe.recompute == Recompute::kCheap;
  const bool full = b.recipe.fusion == Fusion::kFull;
  const double width = h.tokens * h.width * h.act;
  const double v = h.tokens * h.v * h.act;
  const double uvqk = h.tokens * h.uvqk * h.act;
  const double gated = h.tokens * h.out_width * h.act;
  const double mask = h.tokens * h.v;
  int last = -1;
  for (int64_t i = body.layers; i-- > 0;) {
    const std::string name = block.name + "." + std::to_string(i);
    std::vector<int> start = last < 0 ? after : std::vector<int>{last};
    last = b.Gemm(name + ".output.dgrad", h.tokens, h.out_width, h.width, GemmLayout::kNN, GemmEpilogue::kNone, start);
    last = b.Pointwise(name + ".norm_gate_grad", gated + 2 * v + mask, 2 * v + (cheap ? gated : 0.0), {last});
    last = b.Gemm(name + ".output.wgrad", h.width, h.out_width, h.tokens, GemmLayout::kNT, GemmEpilogue::kNone, {last});
    if (cheap) {
      last = b.Pointwise(name + ".norm_again", width, width, {last});
      last = b.Gemm(name + ".uvqk_again", h.tokens, h.uvqk, h.width, GemmLayout::kTN, GemmEpilogue::kBias, {last});
    }
    if (!full) last = b.Pointwise(name + ".clear_gradient", 0, v, {last});
    last = Attention(b, name + ".attention_grad", h.attention, Pass::kBackward, {last});
    last = b.Pointwise(name + ".silu_grad", 2 * v, v, {last});
    if (!full) last = b.Pointwise(name + ".bias_grad", uvqk, 0, {last});
    last = b.Gemm(name + ".uvqk.dgrad", h.tokens, h.width, h.uvqk, GemmLayout::kNN, GemmEpilogue::kNone, {last});
    last = b.Gemm(name + ".uvqk.wgrad", h.uvqk, h.width, h.tokens, GemmLayout::kNT, GemmEpilogue::kNone, {last});
    last = b.Pointwise(name + ".norm_grad", 2 * width, width, {last});
    last = b.Pointwise(name + ".residual_add", 2 * width, width, {last});
  }
  return last;
}

}  // namespace portolan
