#include "kernels/vector_math.h"

#include <gtest/gtest.h>

namespace portolan::kernels {
namespace {

TEST(VectorMath, ExpToTwoUnitsInTheLastPlace) {
  for (float x = -87; x < 88; x += 0.0173f) {
    const double want = std::exp(static_cast<double>(x));
    ASSERT_NEAR(VectorExp(x) / want, 1, 2.4e-7) << x;
  }
  EXPECT_EQ(VectorExp(0), 1);
  EXPECT_LT(VectorExp(-1e30f), 1e-37f);
  EXPECT_TRUE(std::isfinite(VectorExp(1e30f)));
}

TEST(VectorMath, ErfToSevenDigits) {
  for (float x = -6; x < 6; x += 0.0131f) {
    ASSERT_NEAR(VectorErf(x, VectorExp(-x * x)), std::erf(static_cast<double>(x)), 4e-7) << x;
  }
}

}  // namespace
}  // namespace portolan::kernels
