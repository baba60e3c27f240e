#include "loop/measured_grid.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

TEST(MeasuredGrid, PointsComeBackAndBetweenThemLogarithmsAreLinear) {
  const MeasuredGrid grid{{{1, 4}, {2, 8}}, {1, 4, 16, 64}};
  EXPECT_DOUBLE_EQ(grid.At({1, 2}), 1);
  EXPECT_DOUBLE_EQ(grid.At({4, 8}), 64);
  // Halfway in both logarithms: the geometric mean of all four, (1 * 4 * 16 * 64)^(1/4) = 8.
  EXPECT_NEAR(grid.At({2, 4}), 8, 1e-12);
}

TEST(MeasuredGrid, BelowTheFirstPointAndBeyondTheLast) {
  const MeasuredGrid grid{{{10, 100}}, {2, 5}};
  EXPECT_DOUBLE_EQ(grid.At({1}), 2);     // a fixed cost
  EXPECT_DOUBLE_EQ(grid.At({300}), 15);  // three times the work
}

}  // namespace
}  // namespace portolan
