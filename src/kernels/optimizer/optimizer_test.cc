#include "kernels/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

constexpr DenseUpdateKind kKinds[] = {DenseUpdateKind::kSgd, DenseUpdateKind::kMomentum, DenseUpdateKind::kAdagrad,
                                      DenseUpdateKind::kAdam};

TEST(DenseOptimizerReference, ByHand) {
  // G = 0.5 * 4 = 2, lr 0.1. sgd: 1 - 0.2; momentum: v = 0.9 * 1 + 2, 1 - 0.29; adagrad: s = 1 + 4, 1 - 0.2 / sqrt 5;
  // adam, first step from zero: m / (1 - b1) = G, v / (1 - b2) = G^2: 1 - 0.1.
  const float gradient = 4;
  const float expected[] = {0.8f, 0.71f, 1 - 0.2f / std::sqrt(5.0f), 0.9f};
  for (size_t k = 0; k < 4; ++k) {
    DenseUpdate update;
    update.kind = kKinds[k];
    update.learning_rate = 0.1f;
    update.gradient_scale = 0.5f;
    float weight = 1, state[2] = {kKinds[k] == DenseUpdateKind::kAdam ? 0.0f : 1.0f, 0};
    reference::DenseOptimizerStep(update, 1, &gradient, &weight, state);
    EXPECT_NEAR(weight, expected[k], 1e-6) << k;
  }
}

TEST(DenseOptimizer, AgreesWithReference) {
  for (const DenseUpdateKind kind : kKinds) {
    for (const int64_t count : {1, 4097, 10000}) {
      DenseUpdate update;
      update.kind = kind;
      update.learning_rate = 0.01f;
      std::vector<float> want = RandomNumbers(count, 1), got = want;
      std::vector<float> want_state(count * DenseStateFloats(kind)), got_state = want_state;
      for (update.step = 1; update.step <= 3; ++update.step) {
        const auto gradient = RandomNumbers(count, static_cast<unsigned>(update.step + 10));
        reference::DenseOptimizerStep(update, count, gradient.data(), want.data(), want_state.data());
        backend::DenseOptimizerStep(update, count, gradient.data(), got.data(), got_state.data());
      }
      for (int64_t i = 0; i < count; ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << static_cast<int>(kind) << " " << i;
      for (size_t i = 0; i < want_state.size(); ++i) ASSERT_NEAR(got_state[i], want_state[i], 1e-5);
    }
  }
}

TEST(SquaredNorm, AgreesWithReference) {
  const auto values = RandomNumbers(10000, 1);
  EXPECT_NEAR(backend::SquaredNorm(10000, values.data()) / reference::SquaredNorm(10000, values.data()), 1, 1e-9);
  EXPECT_EQ(backend::SquaredNorm(0, nullptr), 0);
}

}  // namespace
}  // namespace portolan::kernels
