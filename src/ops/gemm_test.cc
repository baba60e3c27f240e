#include "ops/gemm.h"

#include <gtest/gtest.h>

#include <vector>

namespace portolan {
namespace {

GemmShape Shape(int64_t m, int64_t n, int64_t k) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  return shape;
}

// Multiply-accumulates a sample of a chain of dense layers, from the work of one sample.
double ChainMacs(const std::vector<int64_t>& widths) {
  double flops = 0;
  for (size_t i = 1; i < widths.size(); ++i) flops += GemmWork(Shape(1, widths[i], widths[i - 1])).matrix_flops.value;
  return flops / 2;
}

TEST(GemmWork, HandSum) {
  // D[2,3] = A[2,4] B[4,3] in bf16: 2*2*3*4 = 48 flops; A 8 + B 12 elements = 40 bytes read; D 6 = 12 bytes.
  const Work work = GemmWork(Shape(2, 3, 4));
  EXPECT_EQ(work.matrix_flops, Flops(48));
  EXPECT_EQ(work.read, Bytes(40));
  EXPECT_EQ(work.written, Bytes(12));
  EXPECT_EQ(work.vector_flops, Flops(0));
  EXPECT_EQ(work.parallelism, 6);
  EXPECT_EQ(work.matrix_dtype, DType::kBf16);
}

TEST(GemmWork, DTypesCountApart) {
  // fp8 A (8) + fp8 B (12) = 20 bytes, fp32 D = 24 bytes; computed in fp8.
  GemmShape shape = Shape(2, 3, 4);
  shape.a = shape.b = shape.compute = DType::kFp8E4m3;
  shape.d = DType::kFp32;
  const Work work = GemmWork(shape);
  EXPECT_EQ(work.read, Bytes(20));
  EXPECT_EQ(work.written, Bytes(24));
  EXPECT_EQ(work.matrix_dtype, DType::kFp8E4m3);
}

TEST(GemmWork, Epilogues) {
  // Bias: 3 elements = 6 bytes more, 6 flops; with ReLU 12 flops; gradient or C operand: 6 elements = 12 bytes, 6
  // flops.
  GemmShape shape = Shape(2, 3, 4);
  shape.epilogue = GemmEpilogue::kBias;
  EXPECT_EQ(GemmWork(shape).read, Bytes(46));
  EXPECT_EQ(GemmWork(shape).vector_flops, Flops(6));
  shape.epilogue = GemmEpilogue::kBiasActivation;
  EXPECT_EQ(GemmWork(shape).read, Bytes(46));
  EXPECT_EQ(GemmWork(shape).vector_flops, Flops(12));
  for (const GemmEpilogue epilogue : {GemmEpilogue::kActivationGradient, GemmEpilogue::kAdd}) {
    shape.epilogue = epilogue;
    EXPECT_EQ(GemmWork(shape).read, Bytes(52));
    EXPECT_EQ(GemmWork(shape).vector_flops, Flops(6));
    EXPECT_EQ(GemmWork(shape).written, Bytes(12));
  }
}

TEST(GemmWork, OuterProductWithKOne) {
  // K = 1: 2*5*7 flops, 12 elements read, 35 written.
  const Work work = GemmWork(Shape(5, 7, 1));
  EXPECT_EQ(work.matrix_flops, Flops(70));
  EXPECT_EQ(work.read, Bytes(24));
  EXPECT_EQ(work.written, Bytes(70));
}

TEST(GemmWork, EmptyProductsDoNoArithmetic) {
  EXPECT_EQ(GemmWork(Shape(0, 7, 3)).matrix_flops, Flops(0));
  EXPECT_EQ(GemmWork(Shape(0, 7, 3)).written, Bytes(0));
  EXPECT_EQ(GemmWork(Shape(5, 7, 0)).matrix_flops, Flops(0));
  EXPECT_EQ(GemmWork(Shape(5, 7, 0)).written, Bytes(70));
}

TEST(GemmWork, BatchedIsBatchTimesOne) {
  GemmShape batched = Shape(27, 27, 128);
  batched.batch = 64;
  const Work one = GemmWork(Shape(27, 27, 128));
  const Work many = GemmWork(batched);
  EXPECT_EQ(many.matrix_flops, one.matrix_flops * 64);
  EXPECT_EQ(many.read, one.read * 64);
  EXPECT_EQ(many.written, one.written * 64);
  EXPECT_EQ(many.parallelism, one.parallelism * 64);
}

TEST(GemmWork, GroupedIsTheSumOfItsGroups) {
  const std::vector<int64_t> rows = {100, 0, 7, 93};
  for (const GemmEpilogue epilogue : {GemmEpilogue::kNone, GemmEpilogue::kBiasActivation, GemmEpilogue::kAdd}) {
    Work sum;
    for (const int64_t m : rows) {
      GemmShape shape = Shape(m, 32, 48);
      shape.epilogue = epilogue;
      const Work work = GemmWork(shape);
      sum.matrix_flops += work.matrix_flops;
      sum.vector_flops += work.vector_flops;
      sum.read += work.read;
      sum.written += work.written;
    }
    GemmShape grouped = Shape(200, 32, 48);
    grouped.groups = 4;
    grouped.epilogue = epilogue;
    const Work work = GemmWork(grouped);
    EXPECT_EQ(work.matrix_flops, sum.matrix_flops);
    EXPECT_EQ(work.vector_flops, sum.vector_flops);
    EXPECT_EQ(work.read, sum.read);
    EXPECT_EQ(work.written, sum.written);
  }
}

TEST(GemmWork, SymmetricInMAndN) {
  const Work a = GemmWork(Shape(479, 1024, 8192));
  const Work b = GemmWork(Shape(1024, 479, 8192));
  EXPECT_EQ(a.matrix_flops, b.matrix_flops);
  EXPECT_EQ(a.read, b.read);
  EXPECT_EQ(a.written, b.written);
}

TEST(GemmWork, LayoutChangesNoWork) {
  GemmShape shape = Shape(479, 1024, 8192);
  const Work forward = GemmWork(shape);
  for (const GemmLayout layout : {GemmLayout::kNN, GemmLayout::kNT}) {
    shape.layout = layout;
    EXPECT_EQ(GemmWork(shape).matrix_flops, forward.matrix_flops);
    EXPECT_EQ(GemmWork(shape).read, forward.read);
  }
}

TEST(GemmWork, MonotoneInEachSize) {
  const Work base = GemmWork(Shape(64, 48, 32));
  for (const GemmShape& bigger : {Shape(65, 48, 32), Shape(64, 49, 32), Shape(64, 48, 33)}) {
    const Work work = GemmWork(bigger);
    EXPECT_GT(work.matrix_flops, base.matrix_flops);
    EXPECT_GT(work.read, base.read);
    EXPECT_GE(work.written, base.written);
  }
}

TEST(GemmWork, LargeSizesDoNotOverflow) {
  EXPECT_DOUBLE_EQ(GemmWork(Shape(int64_t{1} << 32, int64_t{1} << 20, int64_t{1} << 20)).matrix_flops.value, 0x1p73);
}

// MLPerf DLRM-DCNv2 (mlcommons/training, recommendation_v2): 13 dense features, bottom 512-256-128, 27 x 128 features,
// top 1024-1024-512-256-1.
TEST(GemmWork, MlperfDcnV2Layers) {
  // 13*512 + 512*256 + 256*128 = 6,656 + 131,072 + 32,768
  EXPECT_EQ(ChainMacs({13, 512, 256, 128}), 170'496);
  // 3456*1024 + 1024*1024 + 1024*512 + 512*256 + 256 = 3,538,944 + 1,048,576 + 524,288 + 131,072 + 256
  EXPECT_EQ(ChainMacs({3456, 1024, 1024, 512, 256, 1}), 5'243'136);
}

}  // namespace
}  // namespace portolan
