#include "ops/optimizer.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

DenseOptimizerShape Shape(DenseOptimizer optimizer, double parameters) {
  DenseOptimizerShape shape;
  shape.optimizer = optimizer;
  shape.parameters = parameters;
  return shape;
}

TEST(DenseOptimizer, StateBytes) {
  EXPECT_EQ(DenseOptimizerStateBytes(DenseOptimizer::kSgd, 100), Bytes(0));
  EXPECT_EQ(DenseOptimizerStateBytes(DenseOptimizer::kMomentum, 100), Bytes(400));
  EXPECT_EQ(DenseOptimizerStateBytes(DenseOptimizer::kMomentum, 100, DType::kBf16), Bytes(200));
  EXPECT_EQ(DenseOptimizerStateBytes(DenseOptimizer::kAdagrad, 100), Bytes(400));
  EXPECT_EQ(DenseOptimizerStateBytes(DenseOptimizer::kAdam, 100), Bytes(800));
}

TEST(DenseOptimizer, HandSumAdam) {
  // A parameter: reads gradient 4, weight 4, two moments 8 = 16 bytes; writes 12; 11 flops; a root and a reciprocal.
  const Work work = DenseOptimizerWork(Shape(DenseOptimizer::kAdam, 100));
  EXPECT_EQ(work.read, Bytes(1600));
  EXPECT_EQ(work.written, Bytes(1200));
  EXPECT_EQ(work.vector_flops, Flops(1100));
  EXPECT_EQ(work.transcendentals, 200);
  EXPECT_EQ(work.parallelism, 100);
}

TEST(DenseOptimizer, HandSumSgdWithHalfGradientAndCopy) {
  // A parameter: reads 2 + 4, writes 4 + 2; 2 flops.
  DenseOptimizerShape shape = Shape(DenseOptimizer::kSgd, 100);
  shape.gradient = DType::kBf16;
  shape.has_half_copy = true;
  const Work work = DenseOptimizerWork(shape);
  EXPECT_EQ(work.read, Bytes(600));
  EXPECT_EQ(work.written, Bytes(600));
  EXPECT_EQ(work.vector_flops, Flops(200));
  EXPECT_EQ(work.transcendentals, 0);
}

TEST(DenseOptimizer, LinearInParametersAndOrderedByState) {
  Bytes last;
  for (const DenseOptimizer optimizer : {DenseOptimizer::kSgd, DenseOptimizer::kMomentum, DenseOptimizer::kAdam}) {
    const Work one = DenseOptimizerWork(Shape(optimizer, 1000));
    const Work three = DenseOptimizerWork(Shape(optimizer, 3000));
    EXPECT_EQ(three.read, one.read * 3);
    EXPECT_EQ(three.written, one.written * 3);
    EXPECT_GT(one.read, last);
    last = one.read;
    EXPECT_EQ(DenseOptimizerWork(Shape(optimizer, 0)).read, Bytes(0));
  }
}

}  // namespace
}  // namespace portolan
