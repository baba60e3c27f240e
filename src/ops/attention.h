#pragma once

#include <cstdint>

#include "ops/work.h"

namespace portolan {

enum class AttentionKind {
  kSoftmax,   // softmax(Q K^T) V
  kHstuSilu,  // SiLU(Q K^T) V, no normalisation over keys (HSTU, arXiv 2402.17152)
};
enum class AttentionMask { kNone, kCausal };

// Whose kernel runs the attention. The shape is the same for all; only the time differs.
enum class AttentionImplementation {
  kVendorTuned,  // fused, tuned for the device: cuDNN or FlashAttention-3/4 on NVIDIA, CK or AITER on AMD
  kTriton,       // fused, portable: Triton FlashAttention, Triton HSTU
  kFramework,    // unfused: the products write and read the score matrix, which pointwise kernels pass over in fp32
};

// `sequences` independent sequences; lengths are means over them. For jagged batches mean_square_ratio = mean(l^2) /
// mean(l)^2 >= 1 scales the work of the score matrix.
struct AttentionShape {
  AttentionKind kind = AttentionKind::kSoftmax;
  AttentionMask mask = AttentionMask::kNone;
  double sequences = 0;
  double query_length = 0;
  double key_length = 0;
  double mean_square_ratio = 1.0;
  int64_t heads = 1;
  int64_t qk_dim = 64;  // of one head
  int64_t v_dim = 64;
  DType dtype = DType::kBf16;
};

// Pairs (query, key) that the mask keeps, over all sequences, of one head. With q = query_length, k = key_length, r =
// mean_square_ratio: kNone r q k; kCausal (the last query sees the last key, FlashAttention's convention) for q <= k:
// r (q (k - q) + q^2 / 2) + q / 2, for q > k: r k^2 / 2 + k / 2; all times `sequences`.
double AttentionPairs(const AttentionShape& shape);
// Forward: matrix_flops = 2 pairs heads (qk_dim + v_dim), transcendentals = pairs heads (one exp or sigmoid a score);
// Q, K, V read and O written once (tiled, no score matrix in memory: FlashAttention, arXiv 2205.14135), and for softmax
// one fp32 log-sum a query and head written. vector_flops a score: 4 (softmax: scale, maximum, subtract, add) or 3
// (SiLU: scale, times sigmoid, times 1/length).
Work AttentionForwardWork(const AttentionShape& shape);
// Backward recomputes the scores: products S = Q K^T, dP = dO V^T, dV = P^T dO, dQ = dS K, dK = dS^T Q, that is 2 pairs
// heads (3 qk_dim + 2 v_dim) flops: 2.5x the forward when qk_dim = v_dim (arXiv 2205.14135 algorithm 4; DLRMv4's 3.5x
// forward for both passes is the same count). Read: Q, K, V, dO, and for softmax O and the log-sums; written: dQ, dK,
// dV. vector_flops a score: 5 (softmax: scale, subtract; dP - D, times P, scale) or 9 (SiLU: the forward's 3; s (1 + x
// (1 - s)) 4; times dP, times scale / length); for softmax also 2 v_dim a query and head for D = rowsum(dO O).
Work AttentionBackwardWork(const AttentionShape& shape);

}  // namespace portolan
