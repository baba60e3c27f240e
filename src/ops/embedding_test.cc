#include "ops/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace portolan {
namespace {

constexpr EmbeddingOptimizer kOptimizers[] = {EmbeddingOptimizer::kNone,    EmbeddingOptimizer::kSgd,
                                              EmbeddingOptimizer::kAdagrad, EmbeddingOptimizer::kRowwiseAdagrad,
                                              EmbeddingOptimizer::kAdam,    EmbeddingOptimizer::kRowwiseAdam};

// 10 lookups of 6 rows in 4 bags, 8 columns, 300 rows in the table (9 bits: 2 sort passes), int64 indices.
EmbeddingShape Tiny() {
  EmbeddingShape shape;
  shape.lookups = 10;
  shape.bags = 4;
  shape.unique_rows = 6;
  shape.table_rows = 300;
  shape.dim = 8;
  return shape;
}

double Total(const Work& work) { return work.read.value + work.written.value; }

TEST(EmbeddingForward, HandSum) {
  // Read 10 * (8 + 8 * 4) = 400; written 4 * 8 * 4 = 128; 10 * 8 additions.
  const Work work = EmbeddingForwardWork(Tiny());
  EXPECT_EQ(work.read, Bytes(400));
  EXPECT_EQ(work.written, Bytes(128));
  EXPECT_EQ(work.vector_flops, Flops(80));
  EXPECT_EQ(work.matrix_flops, Flops(0));
  EXPECT_EQ(work.parallelism, 32);
}

TEST(EmbeddingForward, HalfRowsAndInt32Indices) {
  // Read 10 * (4 + 8 * 2) = 200; fp16 output 64.
  EmbeddingShape shape = Tiny();
  shape.row = shape.output = DType::kFp16;
  shape.index = DType::kInt32;
  EXPECT_EQ(EmbeddingForwardWork(shape).read, Bytes(200));
  EXPECT_EQ(EmbeddingForwardWork(shape).written, Bytes(64));
}

TEST(EmbeddingForward, NoPoolingAddsNothing) {
  EmbeddingShape shape = Tiny();
  shape.bags = shape.lookups;
  EXPECT_EQ(EmbeddingForwardWork(shape).vector_flops, Flops(0));
}

TEST(EmbeddingSortPasses, KeyBitsByEight) {
  EXPECT_EQ(EmbeddingSortPasses(0), 1);
  EXPECT_EQ(EmbeddingSortPasses(1), 1);
  EXPECT_EQ(EmbeddingSortPasses(256), 1);
  EXPECT_EQ(EmbeddingSortPasses(257), 2);
  EXPECT_EQ(EmbeddingSortPasses(65536), 2);
  EXPECT_EQ(EmbeddingSortPasses(65537), 3);
  EXPECT_EQ(EmbeddingSortPasses(40e6), 4);        // 25.3 bits
  EXPECT_EQ(EmbeddingSortPasses(204184588), 4);   // MLPerf DLRM-DCNv2: 27.6 bits
  EXPECT_EQ(EmbeddingSortPasses(801e9 / 94), 5);  // DLRM-A of MAD-Max: 33 bits
}

TEST(EmbeddingBackward, HandSumOfTheParts) {
  // key 8, value 4. Linearise 10*(8 + 12) = 200; histogram 80; passes 2*2*10*12 = 480; runs 10*8 read + 6*12 written =
  // 152; update reads 6*12 + 10*4 = 112: sort 1024. Gradient 4*8*4 = 128, gathered 10*8*4 = 320. Rows 2*6*32 = 384.
  // Adagrad's state 2*6*32 = 384; row-wise 2*6*4 = 48.
  const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(Tiny(), EmbeddingOptimizer::kAdagrad);
  EXPECT_EQ(traffic.sort_passes, 2);
  EXPECT_EQ(traffic.sort, Bytes(1024));
  EXPECT_EQ(traffic.gradient, Bytes(128));
  EXPECT_EQ(traffic.gradient_gather, Bytes(320));
  EXPECT_EQ(traffic.rows, Bytes(384));
  EXPECT_EQ(traffic.state, Bytes(384));
  EXPECT_EQ(EmbeddingBackwardBytes(Tiny(), EmbeddingOptimizer::kRowwiseAdagrad).state, Bytes(48));
  EXPECT_EQ(EmbeddingBackwardBytes(Tiny(), EmbeddingOptimizer::kSgd).state, Bytes(0));
  EXPECT_EQ(EmbeddingBackwardBytes(Tiny(), EmbeddingOptimizer::kNone).rows, Bytes(192));
}

TEST(EmbeddingBackward, HandSumOfTheWork) {
  // Read: sort 80 + 80 + 240 + 80 + 112 = 592, gradient 128, rows 192, state 24: 936. Written: sort 120 + 240 + 72 =
  // 432, rows 192, state 24: 648. Row-wise Adagrad flops 10*8 + 4*48 + 4*6 = 296; a root and a reciprocal a row: 12.
  const Work work = EmbeddingBackwardWork(Tiny(), EmbeddingOptimizer::kRowwiseAdagrad);
  EXPECT_EQ(work.read, Bytes(936));
  EXPECT_EQ(work.written, Bytes(648));
  EXPECT_EQ(work.vector_flops, Flops(296));
  EXPECT_EQ(work.transcendentals, 12);
  EXPECT_EQ(work.parallelism, 48);
}

TEST(EmbeddingBackward, WorkIsTheSumOfTheParts) {
  for (const EmbeddingOptimizer optimizer : kOptimizers) {
    const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(Tiny(), optimizer);
    const Bytes sum = traffic.sort + traffic.gradient + traffic.rows + traffic.state;
    EXPECT_DOUBLE_EQ(Total(EmbeddingBackwardWork(Tiny(), optimizer)), sum.value);
  }
}

// 65,536 samples of 214 lookups in 26 bags: the sum of docs/ops.md, 136 N + 24 U.
TEST(EmbeddingBackward, SortOfMlperfDcnV2) {
  EmbeddingShape shape;
  shape.lookups = 65536.0 * 214;
  shape.bags = 65536.0 * 26;
  shape.unique_rows = 3e6;
  shape.table_rows = 204184588;
  shape.dim = 128;
  EXPECT_DOUBLE_EQ(EmbeddingBackwardBytes(shape, EmbeddingOptimizer::kAdagrad).sort.value,
                   136.0 * 14'024'704 + 24.0 * 3e6);
}

TEST(EmbeddingBackward, NoLookupsNoWork) {
  EmbeddingShape shape = Tiny();
  shape.lookups = shape.bags = shape.unique_rows = 0;
  for (const EmbeddingOptimizer optimizer : kOptimizers) {
    const Work work = EmbeddingBackwardWork(shape, optimizer);
    EXPECT_EQ(Total(work), 0);
    EXPECT_EQ(work.vector_flops, Flops(0));
    EXPECT_EQ(EmbeddingBackwardBytes(shape, optimizer).sort_passes, 0);
  }
  EXPECT_EQ(Total(EmbeddingForwardWork(shape)), 0);
}

TEST(EmbeddingBackward, UnpooledGathersEachGradientOnce) {
  EmbeddingShape shape = Tiny();
  shape.bags = shape.lookups;
  const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(shape, EmbeddingOptimizer::kSgd);
  EXPECT_EQ(traffic.gradient, traffic.gradient_gather);
}

TEST(EmbeddingBackward, MonotoneInEachSize) {
  for (const EmbeddingOptimizer optimizer : kOptimizers) {
    const double base = Total(EmbeddingBackwardWork(Tiny(), optimizer));
    EmbeddingShape shape = Tiny();
    shape.lookups = 11;
    EXPECT_GT(Total(EmbeddingBackwardWork(shape, optimizer)), base);
    shape = Tiny();
    shape.bags = 5;
    EXPECT_GT(Total(EmbeddingBackwardWork(shape, optimizer)), base);
    shape = Tiny();
    shape.unique_rows = 7;
    EXPECT_GT(Total(EmbeddingBackwardWork(shape, optimizer)), base);
    shape = Tiny();
    shape.dim = 9;
    EXPECT_GT(Total(EmbeddingBackwardWork(shape, optimizer)), base);
    shape = Tiny();
    shape.table_rows = 1e6;
    EXPECT_GT(Total(EmbeddingBackwardWork(shape, optimizer)), base);
  }
}

TEST(EmbeddingBackward, AddsUpOverBatchesOfDisjointRows) {
  EmbeddingShape twice = Tiny();
  twice.lookups *= 2;
  twice.bags *= 2;
  twice.unique_rows *= 2;
  for (const EmbeddingOptimizer optimizer : kOptimizers) {
    EXPECT_DOUBLE_EQ(Total(EmbeddingBackwardWork(twice, optimizer)),
                     2 * Total(EmbeddingBackwardWork(Tiny(), optimizer)));
  }
}

TEST(EmbeddingState, BytesPerRow) {
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kNone, 128), Bytes(0));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kSgd, 128), Bytes(0));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kAdagrad, 128), Bytes(512));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kRowwiseAdagrad, 128), Bytes(4));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kAdam, 128), Bytes(1024));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kRowwiseAdam, 128), Bytes(516));
  EXPECT_EQ(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kAdam, 128, DType::kBf16), Bytes(512));
}

// MLPerf DLRM-DCNv2: 204,184,588 rows of 128 with element-wise Adagrad: 104.5 GB of state.
TEST(EmbeddingState, MlperfDcnV2) {
  EXPECT_NEAR(EmbeddingStateBytesPerRow(EmbeddingOptimizer::kAdagrad, 128).value * 204184588, 104.5e9, 0.1e9);
}

}  // namespace
}  // namespace portolan
