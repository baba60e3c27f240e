#include "kernels/layer_norm/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

TEST(LayerNormReference, ByHand) {
  // (1, 3): mean 2, variance 1.
  const float x[] = {1, 3}, gamma[] = {2, 4}, beta[] = {0, 1};
  float y[2], mean, rstd;
  reference::LayerNormForward(1, 2, x, gamma, beta, y, &mean, &rstd);
  EXPECT_EQ(mean, 2);
  EXPECT_FLOAT_EQ(rstd, 1 / std::sqrt(1 + 1e-5f));
  EXPECT_FLOAT_EQ(y[0], -2 * rstd);
  EXPECT_FLOAT_EQ(y[1], 4 * rstd + 1);
}

// sum dy y changes by dx h when x changes by h.
TEST(LayerNormReference, GradientIsTheDerivative) {
  const int64_t width = 5;
  const auto x = RandomNumbers(width, 1), gamma = RandomNumbers(width, 2), beta = RandomNumbers(width, 3),
             dy = RandomNumbers(width, 4);
  std::vector<float> y(width), dx(width), dgamma(width), dbeta(width);
  float mean, rstd;
  reference::LayerNormForward(1, width, x.data(), gamma.data(), beta.data(), y.data(), &mean, &rstd);
  reference::LayerNormBackward(1, width, x.data(), gamma.data(), &mean, &rstd, dy.data(), dx.data(), dgamma.data(),
                               dbeta.data());
  const auto value = [&](std::vector<float> at) {
    reference::LayerNormForward(1, width, at.data(), gamma.data(), beta.data(), y.data(), &mean, &rstd);
    double sum = 0;
    for (int64_t n = 0; n < width; ++n) sum += static_cast<double>(dy[n]) * y[n];
    return sum;
  };
  for (int64_t n = 0; n < width; ++n) {
    const float h = 1e-2f;
    auto low = x, high = x;
    low[n] -= h;
    high[n] += h;
    EXPECT_NEAR(dx[n], (value(high) - value(low)) / (2 * h), 2e-3) << n;
  }
}

TEST(LayerNorm, AgreesWithReference) {
  for (const int64_t rows : {1, 70}) {
    for (const int64_t width : {1, 33, 256}) {
      const int64_t n = rows * width;
      const auto x = RandomNumbers(n, 1), gamma = RandomNumbers(width, 2), beta = RandomNumbers(width, 3),
                 dy = RandomNumbers(n, 4);
      std::vector<float> y(n), want_y(n), mean(rows), want_mean(rows), rstd(rows), want_rstd(rows), dx(n), want_dx(n);
      std::vector<float> dgamma(width), want_dgamma(width), dbeta(width), want_dbeta(width);
      reference::LayerNormForward(rows, width, x.data(), gamma.data(), beta.data(), want_y.data(), want_mean.data(),
                                  want_rstd.data());
      backend::LayerNormForward(rows, width, x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data());
      reference::LayerNormBackward(rows, width, x.data(), gamma.data(), want_mean.data(), want_rstd.data(), dy.data(),
                                   want_dx.data(), want_dgamma.data(), want_dbeta.data());
      backend::LayerNormBackward(rows, width, x.data(), gamma.data(), want_mean.data(), want_rstd.data(), dy.data(),
                                 dx.data(), dgamma.data(), dbeta.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[i], want_y[i], 1e-4);
        ASSERT_NEAR(dx[i], want_dx[i], width == 1 ? 1e-2 : 1e-4);  // one column: rstd = 316
      }
      for (int64_t i = 0; i < width; ++i) {
        ASSERT_NEAR(dgamma[i], want_dgamma[i], 1e-4);
        ASSERT_NEAR(dbeta[i], want_dbeta[i], 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace portolan::kernels
