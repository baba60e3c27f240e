#include "kernels/loss/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

TEST(BceReference, ByHand) {
  // z = 0: log 2 whatever the label; z = log 3, y = 1: sigmoid 3/4, loss -log(3/4), gradient -1/4.
  const float logits[] = {0, std::log(3.0f)}, labels[] = {0, 1};
  float gradient[2];
  const double sum = reference::BceWithLogits(2, logits, 1, labels, nullptr, 2, gradient);
  EXPECT_NEAR(sum, std::log(2.0) - std::log(0.75), 1e-6);
  EXPECT_FLOAT_EQ(gradient[0], 1.0f);
  EXPECT_FLOAT_EQ(gradient[1], -0.5f);
}

TEST(Bce, AgreesWithReferenceAndStaysFinite) {
  const int64_t batch = 2500;
  std::vector<float> logits = RandomNumbers(2 * batch, 1), labels = RandomNumbers(batch, 2), weights(batch, 0.5f);
  for (float& z : logits) z *= 8;
  for (float& y : labels) y = y > 0 ? 1.0f : 0.0f;
  logits[0] = 1000;
  logits[2] = -1000;
  std::vector<float> want(2 * batch), got(2 * batch);
  const double expected =
      reference::BceWithLogits(batch, logits.data(), 2, labels.data(), weights.data(), 0.1f, want.data());
  const double actual =
      backend::BceWithLogits(batch, logits.data(), 2, labels.data(), weights.data(), 0.1f, got.data());
  EXPECT_TRUE(std::isfinite(actual));
  EXPECT_NEAR(actual / expected, 1, 1e-6);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-7);
}

}  // namespace
}  // namespace portolan::kernels
