#include "ops/attention.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

// 2 sequences, 3 queries, 3 keys, 2 heads of 4 + 5, bf16.
AttentionShape Tiny(AttentionKind kind, AttentionMask mask) {
  AttentionShape shape;
  shape.kind = kind;
  shape.mask = mask;
  shape.sequences = 2;
  shape.query_length = 3;
  shape.key_length = 3;
  shape.heads = 2;
  shape.qk_dim = 4;
  shape.v_dim = 5;
  return shape;
}

// Counts pairs one by one: query i sees keys up to i + (key_length - query_length).
double CountCausal(int queries, int keys) {
  double pairs = 0;
  for (int i = 0; i < queries; ++i) {
    for (int j = 0; j < keys; ++j) pairs += j <= i + keys - queries ? 1 : 0;
  }
  return pairs;
}

TEST(AttentionPairs, CausalIsACount) {
  for (const int queries : {1, 2, 5, 9}) {
    for (const int keys : {1, 2, 5, 9}) {
      AttentionShape shape = Tiny(AttentionKind::kSoftmax, AttentionMask::kCausal);
      shape.query_length = queries;
      shape.key_length = keys;
      EXPECT_EQ(AttentionPairs(shape), 2 * CountCausal(queries, keys)) << queries << " x " << keys;
      shape.mask = AttentionMask::kNone;
      EXPECT_EQ(AttentionPairs(shape), 2.0 * queries * keys);
    }
  }
}

TEST(AttentionPairs, JaggedIsTheSumOfItsSequences) {
  // Lengths 2, 4, 9: mean 5, mean square 101/3, ratio 101/75. Full: 4 + 16 + 81 = 101; causal: 3 + 10 + 45 = 58.
  AttentionShape shape = Tiny(AttentionKind::kHstuSilu, AttentionMask::kNone);
  shape.sequences = 3;
  shape.query_length = shape.key_length = 5;
  shape.mean_square_ratio = 101.0 / 75;
  EXPECT_DOUBLE_EQ(AttentionPairs(shape), 101);
  shape.mask = AttentionMask::kCausal;
  EXPECT_DOUBLE_EQ(AttentionPairs(shape), 58);
}

TEST(AttentionForward, HandSum) {
  // Pairs 2*9, scores 36: flops 2*36*9 = 648. Q, K 2*3*2*4 = 48 each, V, O 60 elements: read 156 * 2 = 312 bytes,
  // written 120, and for softmax 12 fp32 log-sums = 48.
  const Work softmax = AttentionForwardWork(Tiny(AttentionKind::kSoftmax, AttentionMask::kNone));
  EXPECT_EQ(softmax.matrix_flops, Flops(648));
  EXPECT_EQ(softmax.transcendentals, 36);
  EXPECT_EQ(softmax.vector_flops, Flops(144));
  EXPECT_EQ(softmax.read, Bytes(312));
  EXPECT_EQ(softmax.written, Bytes(168));
  EXPECT_EQ(softmax.parallelism, 60);
  const Work silu = AttentionForwardWork(Tiny(AttentionKind::kHstuSilu, AttentionMask::kNone));
  EXPECT_EQ(silu.matrix_flops, Flops(648));
  EXPECT_EQ(silu.vector_flops, Flops(108));
  EXPECT_EQ(silu.written, Bytes(120));
}

TEST(AttentionBackward, HandSum) {
  // Flops 2*36*(3*4 + 2*5) = 1584. SiLU reads Q K V dO = 216 elements = 432 bytes, writes dQ dK dV = 312. Softmax also
  // reads O (120 bytes) and 48 bytes of log-sums, and adds 2*60 flops to 5*36.
  const Work silu = AttentionBackwardWork(Tiny(AttentionKind::kHstuSilu, AttentionMask::kNone));
  EXPECT_EQ(silu.matrix_flops, Flops(1584));
  EXPECT_EQ(silu.vector_flops, Flops(324));
  EXPECT_EQ(silu.read, Bytes(432));
  EXPECT_EQ(silu.written, Bytes(312));
  const Work softmax = AttentionBackwardWork(Tiny(AttentionKind::kSoftmax, AttentionMask::kNone));
  EXPECT_EQ(softmax.vector_flops, Flops(300));
  EXPECT_EQ(softmax.read, Bytes(600));
  EXPECT_EQ(softmax.written, Bytes(312));
}

TEST(AttentionBackward, TwoAndAHalfTimesForwardWhenHeadsAreSquare) {
  for (const AttentionKind kind : {AttentionKind::kSoftmax, AttentionKind::kHstuSilu}) {
    AttentionShape shape = Tiny(kind, AttentionMask::kCausal);
    shape.qk_dim = shape.v_dim = 64;
    EXPECT_DOUBLE_EQ(AttentionBackwardWork(shape).matrix_flops.value,
                     2.5 * AttentionForwardWork(shape).matrix_flops.value);
  }
}

// MLPerf v6.1 DLRMv4: S = 4096, 4 heads of 128 + 128, 3 layers, causal: 3.5 * 2 * (S^2 / 2) * H * (dqk + dv) * L =
// 180.4 GFLOP a sample, forward and backward. The diagonal, which S^2 / 2 halves, adds 1 / S = 0.02 %.
TEST(Attention, MlperfDlrmV4) {
  AttentionShape shape;
  shape.kind = AttentionKind::kHstuSilu;
  shape.mask = AttentionMask::kCausal;
  shape.sequences = 1;
  shape.query_length = shape.key_length = 4096;
  shape.heads = 4;
  shape.qk_dim = shape.v_dim = 128;
  const Flops layer = AttentionForwardWork(shape).matrix_flops + AttentionBackwardWork(shape).matrix_flops;
  EXPECT_NEAR(3 * layer.value, 180.4e9, 0.0005 * 180.4e9);
}

TEST(Attention, LongestSequencesApproachHalfOfFull) {
  AttentionShape causal = Tiny(AttentionKind::kSoftmax, AttentionMask::kCausal);
  causal.query_length = causal.key_length = 1e6;
  AttentionShape full = causal;
  full.mask = AttentionMask::kNone;
  EXPECT_NEAR(AttentionPairs(causal) / AttentionPairs(full), 0.5, 1e-6);
}

TEST(Attention, MonotoneInEachSizeAndAdditiveInSequences) {
  for (const AttentionMask mask : {AttentionMask::kNone, AttentionMask::kCausal}) {
    AttentionShape base = Tiny(AttentionKind::kSoftmax, mask);
    base.key_length = 5;
    const double flops = AttentionForwardWork(base).matrix_flops.value;
    const auto grown = [&](auto change) {
      AttentionShape shape = base;
      change(shape);
      return AttentionForwardWork(shape).matrix_flops.value;
    };
    EXPECT_GT(grown([](AttentionShape& s) { s.query_length += 1; }), flops);
    EXPECT_GT(grown([](AttentionShape& s) { s.key_length += 1; }), flops);
    EXPECT_GT(grown([](AttentionShape& s) { s.heads += 1; }), flops);
    EXPECT_GT(grown([](AttentionShape& s) { s.qk_dim += 1; }), flops);
    EXPECT_GT(grown([](AttentionShape& s) { s.v_dim += 1; }), flops);
    EXPECT_GT(grown([](AttentionShape& s) { s.mean_square_ratio = 1.5; }), flops);
    EXPECT_DOUBLE_EQ(grown([](AttentionShape& s) { s.sequences *= 3; }), 3 * flops);
    EXPECT_EQ(grown([](AttentionShape& s) { s.sequences = 0; }), 0);
    EXPECT_EQ(grown([](AttentionShape& s) { s.query_length = 0; }), 0);
  }
}

}  // namespace
}  // namespace portolan
