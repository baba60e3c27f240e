#include "kernels/cross/cross.h"

#include <gtest/gtest.h>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

TEST(CrossReference, ByHand) {
  // y = 2 * (3 + 1) + 5 = 13; du = 10 * 2 = 20; dx0 = 1 + 10 * (3 + 1) = 41.
  const float x0 = 2, u = 3, bias = 1, x = 5, dy = 10;
  float y = 0, du = 0, dbias = 9, dx0 = 1;
  reference::CrossForward(1, 1, &x0, &u, &bias, &x, &y);
  reference::CrossBackward(1, 1, &x0, &u, &bias, &dy, &du, &dbias, &dx0);
  EXPECT_EQ(y, 13);
  EXPECT_EQ(du, 20);
  EXPECT_EQ(dbias, 20);
  EXPECT_EQ(dx0, 41);
}

TEST(Cross, AgreesWithReference) {
  for (const int64_t batch : {1, 65, 300}) {
    for (const int64_t width : {1, 33, 128}) {
      const int64_t n = batch * width;
      const auto x0 = RandomNumbers(n, 1), u = RandomNumbers(n, 2), bias = RandomNumbers(width, 3);
      const auto x = RandomNumbers(n, 4), dy = RandomNumbers(n, 5);
      std::vector<float> y(n), want_y(n), du(n), want_du(n), dbias(width), want_dbias(width);
      std::vector<float> dx0 = RandomNumbers(n, 6), want_dx0 = dx0;
      reference::CrossForward(batch, width, x0.data(), u.data(), bias.data(), x.data(), want_y.data());
      backend::CrossForward(batch, width, x0.data(), u.data(), bias.data(), x.data(), y.data());
      reference::CrossBackward(batch, width, x0.data(), u.data(), bias.data(), dy.data(), want_du.data(),
                               want_dbias.data(), want_dx0.data());
      backend::CrossBackward(batch, width, x0.data(), u.data(), bias.data(), dy.data(), du.data(), dbias.data(),
                             dx0.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[i], want_y[i], 1e-6);
        ASSERT_NEAR(du[i], want_du[i], 1e-6);
        ASSERT_NEAR(dx0[i], want_dx0[i], 1e-6);
      }
      for (int64_t i = 0; i < width; ++i) ASSERT_NEAR(dbias[i], want_dbias[i], 1e-4);
    }
  }
}

}  // namespace
}  // namespace portolan::kernels
