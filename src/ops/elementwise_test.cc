#include "ops/elementwise.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

// Layer norm of [4, 8] bf16: 32 elements, 64 bytes each way, 5 flops and no exp an element, rows of 8.
ElementwiseShape LayerNorm() {
  ElementwiseShape shape;
  shape.read = Bytes(64);
  shape.written = Bytes(64);
  shape.elements = 32;
  shape.flops_per_element = 5;
  shape.reduction_length = 8;
  return shape;
}

TEST(ElementwiseWork, HandSum) {
  const Work work = ElementwiseWork(LayerNorm());
  EXPECT_EQ(work.read, Bytes(64));
  EXPECT_EQ(work.written, Bytes(64));
  EXPECT_EQ(work.vector_flops, Flops(160));
  EXPECT_EQ(work.matrix_flops, Flops(0));
  EXPECT_EQ(work.transcendentals, 0);
  EXPECT_EQ(work.parallelism, 32);
}

TEST(ElementwiseWork, TranscendentalsAreCountedPerElement) {
  ElementwiseShape shape = LayerNorm();
  shape.transcendentals_per_element = 2;
  EXPECT_EQ(ElementwiseWork(shape).transcendentals, 64);
}

TEST(ElementwiseWork, ReductionLengthAddsNoWork) {
  ElementwiseShape shape = LayerNorm();
  shape.reduction_length = 0;
  EXPECT_EQ(ElementwiseWork(shape).vector_flops, ElementwiseWork(LayerNorm()).vector_flops);
}

TEST(ElementwiseWork, EmptyIsNoWork) {
  const Work work = ElementwiseWork(ElementwiseShape{});
  EXPECT_EQ(work.vector_flops, Flops(0));
  EXPECT_EQ(work.read + work.written, Bytes(0));
}

}  // namespace
}  // namespace portolan
