#include "select/problem.h"

#include <gtest/gtest.h>

#include "select/test_devices.h"

namespace portolan {
namespace {

TEST(ProblemTest, RowAlignmentFollowsTheStoredRows) {
  // A is [M, K], B is [N, K]: rows of 479 bf16 are 958 bytes = 2 x 479.
  GemmProblem p = Product(4096, 1024, 479, GemmLayout::kTN);
  EXPECT_EQ(RowAlignmentA(p), 2);
  EXPECT_EQ(RowAlignmentB(p), 2);
  EXPECT_EQ(RowAlignmentD(p), 16);
  // As input gradient B is [K, N]: 2048 bytes.
  p.layout = GemmLayout::kNN;
  EXPECT_EQ(RowAlignmentB(p), 16);
  // As weight gradient A is [K, M].
  p.layout = GemmLayout::kNT;
  EXPECT_EQ(RowAlignmentA(p), 16);
}

TEST(ProblemTest, LeadingDimensionAndPointersCount) {
  GemmProblem p = Product(4096, 1024, 479);
  p.lda = 480;  // 960 bytes
  EXPECT_EQ(RowAlignmentA(p), 16);
  p.pointer_alignment_bytes = 4;
  EXPECT_EQ(RowAlignmentA(p), 4);
}

TEST(ProblemTest, ShapeAndBack) {
  GemmProblem p = Product(3, 5, 7, GemmLayout::kNT);
  p.batch = 11;
  const GemmShape shape = ShapeOf(p);
  EXPECT_EQ(shape.m, 3);
  EXPECT_EQ(shape.k, 7);
  EXPECT_EQ(ProblemOf(shape), p);
}

}  // namespace
}  // namespace portolan
