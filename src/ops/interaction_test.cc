#include "ops/interaction.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

DotInteractionShape Shape(int64_t batch, int64_t features, int64_t dim) {
  DotInteractionShape shape;
  shape.batch = batch;
  shape.features = features;
  shape.dim = dim;
  return shape;
}

TEST(DotInteraction, HandSum) {
  // 2 samples, 3 features of 4, fp16: 3 pairs a sample. Forward flops 2*2*3*4 = 48, read 24 elements = 48 bytes,
  // written 2*(3 + 4) = 14 elements = 28 bytes. Backward flops 96 and 8 additions, read 24 + 14 elements = 76 bytes,
  // written 48.
  const Work forward = DotInteractionForwardWork(Shape(2, 3, 4));
  EXPECT_EQ(forward.matrix_flops, Flops(48));
  EXPECT_EQ(forward.matrix_dtype, DType::kFp16);
  EXPECT_EQ(forward.read, Bytes(48));
  EXPECT_EQ(forward.written, Bytes(28));
  EXPECT_EQ(forward.parallelism, 14);
  const Work backward = DotInteractionBackwardWork(Shape(2, 3, 4));
  EXPECT_EQ(backward.matrix_flops, Flops(96));
  EXPECT_EQ(backward.vector_flops, Flops(8));
  EXPECT_EQ(backward.read, Bytes(76));
  EXPECT_EQ(backward.written, Bytes(48));
}

// DLRM on Criteo: 26 tables and the dense feature, dim 128: 27*26/2 = 351 products + 128 = 479 inputs of the top MLP.
TEST(DotInteraction, CriteoOutputWidth) {
  EXPECT_EQ(DotInteractionForwardWork(Shape(1, 27, 128)).written, Bytes(2 * 479));
}

TEST(DotInteraction, OneFeatureOrNone) {
  EXPECT_EQ(DotInteractionForwardWork(Shape(2, 1, 4)).matrix_flops, Flops(0));
  EXPECT_EQ(DotInteractionForwardWork(Shape(2, 1, 4)).written, Bytes(16));
  EXPECT_EQ(DotInteractionForwardWork(Shape(2, 0, 4)).written, Bytes(0));
  EXPECT_EQ(DotInteractionBackwardWork(Shape(2, 0, 4)).written, Bytes(0));
}

TEST(DotInteraction, MonotoneLinearInBatchAndTwiceBackward) {
  const Work base = DotInteractionForwardWork(Shape(8, 9, 16));
  EXPECT_GT(DotInteractionForwardWork(Shape(8, 10, 16)).matrix_flops, base.matrix_flops);
  EXPECT_GT(DotInteractionForwardWork(Shape(8, 9, 17)).matrix_flops, base.matrix_flops);
  const Work twice = DotInteractionForwardWork(Shape(16, 9, 16));
  EXPECT_EQ(twice.matrix_flops, base.matrix_flops * 2);
  EXPECT_EQ(twice.read, base.read * 2);
  EXPECT_EQ(twice.written, base.written * 2);
  EXPECT_EQ(DotInteractionBackwardWork(Shape(8, 9, 16)).matrix_flops, base.matrix_flops * 2);
}

}  // namespace
}  // namespace portolan
