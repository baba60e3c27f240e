#include "kernels/activation/activation.h"

#include <gtest/gtest.h>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

constexpr ActivationKind kKinds[] = {ActivationKind::kNone, ActivationKind::kRelu, ActivationKind::kSigmoid,
                                     ActivationKind::kSilu, ActivationKind::kGelu};

TEST(BiasActivationReference, ReluByHand) {
  float x[] = {1, -2, 3, 4};
  const float bias[] = {-2, 1};
  float y[4], dx[4], dbias[2];
  reference::BiasActivationForward(ActivationKind::kRelu, 2, 2, 2, x, bias, 2, y);  // (-1, -1), (1, 5)
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[3], 5);
  const float dy[] = {1, 2, 3, 4};
  reference::BiasActivationBackward(ActivationKind::kRelu, 2, 2, 2, x, 2, y, 2, dy, 2, dx, dbias);
  EXPECT_EQ(dx[0], 0);
  EXPECT_EQ(dx[3], 4);
  EXPECT_EQ(dbias[0], 3);
  EXPECT_EQ(dbias[1], 4);
}

// The slope agrees with the difference quotient of the value: (f(x + h) - f(x - h)) / 2h.
TEST(BiasActivationReference, SlopeIsTheDerivative) {
  for (const ActivationKind kind : kKinds) {
    for (const float at : {-2.0f, -0.3f, 0.4f, 1.7f}) {
      const float h = 1e-2f, one = 1;
      float low_x = at - h, high_x = at + h, x = at, low, high, y, dx;
      reference::BiasActivationForward(kind, 1, 1, 1, &low_x, nullptr, 1, &low);
      reference::BiasActivationForward(kind, 1, 1, 1, &high_x, nullptr, 1, &high);
      reference::BiasActivationForward(kind, 1, 1, 1, &x, nullptr, 1, &y);
      reference::BiasActivationBackward(kind, 1, 1, 1, &x, 1, &y, 1, &one, 1, &dx, nullptr);
      EXPECT_NEAR(dx, (high - low) / (2 * h), 1e-4) << static_cast<int>(kind) << " at " << at;
    }
  }
}

TEST(BiasActivation, AgreesWithReference) {
  for (const ActivationKind kind : kKinds) {
    for (const int64_t rows : {1, 65, 200}) {
      const int64_t width = 37, stride = 40, n = rows * stride;
      std::vector<float> x = RandomNumbers(n, 1), want_x = x, y(n), want_y(n), dx(n), want_dx(n), dbias(width),
                         want_dbias(width);
      const auto bias = RandomNumbers(width, 2), dy = RandomNumbers(n, 3);
      reference::BiasActivationForward(kind, rows, width, stride, want_x.data(), bias.data(), stride, want_y.data());
      backend::BiasActivationForward(kind, rows, width, stride, x.data(), bias.data(), stride, y.data());
      reference::BiasActivationBackward(kind, rows, width, stride, want_x.data(), stride, want_y.data(), stride,
                                        dy.data(), stride, want_dx.data(), want_dbias.data());
      backend::BiasActivationBackward(kind, rows, width, stride, x.data(), stride, y.data(), stride, dy.data(), stride,
                                      dx.data(), dbias.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[i], want_y[i], 1e-6);
        ASSERT_NEAR(dx[i], want_dx[i], 1e-6);
      }
      for (int64_t i = 0; i < width; ++i) ASSERT_NEAR(dbias[i], want_dbias[i], 1e-4);
    }
  }
}

}  // namespace
}  // namespace portolan::kernels
