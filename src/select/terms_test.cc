#include "select/terms.h"

#include <gtest/gtest.h>

#include "select/test_devices.h"

namespace portolan {
namespace {

TEST(TermsTest, MainLoopIsTheLongestTermOrALittleMore) {
  KernelTerms t;
  t.launch = 1;
  t.prologue = 2;
  t.matrix = 3;
  t.hbm = 4;
  t.epilogue = 5;
  t.clearing = 6;
  SumTerms(&t, 0);
  EXPECT_DOUBLE_EQ(t.main_loop, 4);
  EXPECT_DOUBLE_EQ(t.total, 18);
  SumTerms(&t, 2);  // sqrt(9 + 16) = 5
  EXPECT_DOUBLE_EQ(t.main_loop, 5);
  EXPECT_DOUBLE_EQ(t.total, 19);
}

TEST(TermsTest, EstimatePartsAddUpToTheTotal) {
  KernelTerms t;
  t.launch = 1;
  t.matrix = 3;
  t.lds = 1;
  t.hbm = 4;
  t.latency = 2;
  t.split_reduction = 0.5;
  SumTerms(&t, 0);
  const Estimate e = EstimateOf(t);
  EXPECT_DOUBLE_EQ(e.launch.value, 1);
  EXPECT_DOUBLE_EQ(e.compute.value + e.memory.value + e.launch.value, e.total.value);
  // The 4 s of the main loop fall 6 : 4 to compute and latency against HBM; the reduction is memory.
  EXPECT_DOUBLE_EQ(e.memory.value, 4 * 0.4 + 0.5);
}

TEST(TermsTest, TilesOfBatchesAndGroups) {
  GemmKernel kernel;
  kernel.tile_m = 128;
  kernel.tile_n = 64;
  GemmProblem p = Product(129, 65, 10);
  EXPECT_EQ(TileCount(p, kernel), 4);  // 2 x 2
  p.batch = 3;
  EXPECT_EQ(TileCount(p, kernel), 12);
  const int64_t rows[] = {1, 127, 1};  // one tile row each
  p.batch = 1;
  p.group_m = rows;
  p.groups = 3;
  EXPECT_EQ(TileCount(p, kernel), 6);
}

TEST(TermsTest, ClearingAnFp32OutputByHand) {
  // 1000 x 1000: 4 MB cleared at 50 GB/s = 80 us, read from the L2 at 100 GB/s = 40 us, 2 MB of bf16 written = 40 us,
  // and two kernels of 1.2 us.
  EXPECT_NEAR(ClearAndConvertSeconds(Product(1000, 1000, 10), RoundAccelerator()), 162.4e-6, 1e-10);
}

}  // namespace
}  // namespace portolan
