#include "ops/cross.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

constexpr CrossFusion kFusions[] = {CrossFusion::kFused, CrossFusion::kUnfused};

LowRankCrossShape Shape(int64_t batch, int64_t width, int64_t rank) {
  LowRankCrossShape shape;
  shape.batch = batch;
  shape.width = width;
  shape.rank = rank;
  return shape;
}

template <typename Gemms>
Flops MatrixFlops(const Gemms& gemms) {
  Flops sum;
  for (const GemmShape& gemm : gemms) sum += GemmWork(gemm).matrix_flops;
  return sum;
}

Bytes Traffic(const std::vector<ElementwiseShape>& kernels) {
  Bytes sum;
  for (const ElementwiseShape& kernel : kernels) sum += kernel.read + kernel.written;
  return sum;
}

TEST(LowRankCross, GemmSizesOfATinyLayer) {
  // batch 2, width 6, rank 3.
  const auto forward = CrossForwardGemms(Shape(2, 6, 3));
  EXPECT_EQ(forward[0].m, 2);  // h [2,3] = x [2,6] V^T
  EXPECT_EQ(forward[0].n, 3);
  EXPECT_EQ(forward[0].k, 6);
  EXPECT_EQ(forward[0].layout, GemmLayout::kTN);
  EXPECT_EQ(forward[1].m, 2);  // u [2,6] = h [2,3] U^T + b
  EXPECT_EQ(forward[1].n, 6);
  EXPECT_EQ(forward[1].k, 3);
  EXPECT_EQ(forward[1].epilogue, GemmEpilogue::kBias);

  const auto backward = CrossBackwardGemms(Shape(2, 6, 3), CrossFusion::kFused);
  const int64_t expected[4][3] = {{2, 3, 6}, {6, 3, 2}, {2, 6, 3}, {3, 6, 2}};  // d_h, d_U, d_x, d_V
  const GemmLayout layouts[4] = {GemmLayout::kNN, GemmLayout::kNT, GemmLayout::kNN, GemmLayout::kNT};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(backward[i].m, expected[i][0]) << i;
    EXPECT_EQ(backward[i].n, expected[i][1]) << i;
    EXPECT_EQ(backward[i].k, expected[i][2]) << i;
    EXPECT_EQ(backward[i].layout, layouts[i]) << i;
  }
  EXPECT_EQ(backward[2].epilogue, GemmEpilogue::kAdd);
  EXPECT_EQ(CrossBackwardGemms(Shape(2, 6, 3), CrossFusion::kUnfused)[2].epilogue, GemmEpilogue::kNone);
}

// MLPerf DLRM-DCNv2: 3 layers of rank 512 on 27 x 128 = 3456: 3 * 2 * 3456 * 512 MACs a sample.
TEST(LowRankCross, MlperfDcnV2Macs) {
  EXPECT_EQ(3 * MatrixFlops(CrossForwardGemms(Shape(1, 3456, 512))).value / 2, 10'616'832);
}

TEST(LowRankCross, BackwardIsTwiceForward) {
  for (const CrossFusion fusion : kFusions) {
    EXPECT_EQ(MatrixFlops(CrossBackwardGemms(Shape(64, 96, 32), fusion)),
              MatrixFlops(CrossForwardGemms(Shape(64, 96, 32))) * 2);
  }
}

TEST(LowRankCross, PassesAreThoseOfTheHeader) {
  // batch 2, width 6 in bf16: one tensor is 24 bytes, the bias gradient 12.
  const LowRankCrossShape shape = Shape(2, 6, 3);
  EXPECT_EQ(Traffic(CrossForwardElementwise(shape, CrossFusion::kFused)), Bytes(4 * 24));
  EXPECT_EQ(Traffic(CrossForwardElementwise(shape, CrossFusion::kUnfused)), Bytes(6 * 24));
  EXPECT_EQ(Traffic(CrossBackwardElementwise(shape, CrossFusion::kFused)), Bytes(6 * 24 + 12));
  EXPECT_EQ(Traffic(CrossBackwardElementwise(shape, CrossFusion::kUnfused)), Bytes(13 * 24 + 12));
  EXPECT_EQ(CrossForwardElementwise(shape, CrossFusion::kFused).size(), 1u);
  EXPECT_EQ(CrossForwardElementwise(shape, CrossFusion::kUnfused).size(), 2u);
  EXPECT_EQ(CrossBackwardElementwise(shape, CrossFusion::kFused).size(), 1u);
  EXPECT_EQ(CrossBackwardElementwise(shape, CrossFusion::kUnfused).size(), 5u);
}

TEST(LowRankCross, FusionChangesTrafficNotArithmetic) {
  // A product and a sum forward; d_u, d_x0 (2), d_b and d_x backward, of which the fused form leaves d_x to a GEMM.
  const LowRankCrossShape shape = Shape(64, 96, 32);
  const auto flops = [](const std::vector<ElementwiseShape>& kernels) {
    Flops sum;
    for (const ElementwiseShape& kernel : kernels) sum += ElementwiseWork(kernel).vector_flops;
    return sum;
  };
  EXPECT_EQ(flops(CrossForwardElementwise(shape, CrossFusion::kFused)),
            flops(CrossForwardElementwise(shape, CrossFusion::kUnfused)));
  EXPECT_EQ(flops(CrossBackwardElementwise(shape, CrossFusion::kFused)) +
                GemmWork(CrossBackwardGemms(shape, CrossFusion::kFused)[2]).vector_flops,
            flops(CrossBackwardElementwise(shape, CrossFusion::kUnfused)));
}

TEST(LowRankCross, LinearInBatchAndEmptyAtZero) {
  const Bytes one = Traffic(CrossForwardElementwise(Shape(64, 96, 32), CrossFusion::kFused));
  EXPECT_EQ(Traffic(CrossForwardElementwise(Shape(128, 96, 32), CrossFusion::kFused)), one * 2);
  EXPECT_EQ(MatrixFlops(CrossForwardGemms(Shape(0, 96, 32))), Flops(0));
  EXPECT_EQ(Traffic(CrossForwardElementwise(Shape(0, 96, 32), CrossFusion::kFused)), Bytes(0));
}

}  // namespace
}  // namespace portolan
