#include "select/selection_shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace portolan {
namespace {

double FactorOf(const std::vector<double>& seconds, double error) {
  SelectionShift shift(*std::min_element(seconds.begin(), seconds.end()), error);
  shift.Add(seconds);
  return shift.Factor();
}

TEST(SelectionShiftTest, HandSums) {
  // One kernel: nothing was chosen. Two of equal time: the density is level there.
  EXPECT_DOUBLE_EQ(FactorOf({3e-6}, 0.1), 1.0);
  EXPECT_DOUBLE_EQ(FactorOf({3e-6, 3e-6}, 0.1), 1.0);
  // A second one s / 2 behind: weights 1 and exp(-1/2) = 0.60653; shift = 4 x s / 2 x 0.60653 / 1.60653 = 0.75508 s.
  EXPECT_NEAR(std::log(FactorOf({1.0, std::exp(0.05)}, 0.1)), 0.075508, 1e-6);
  // Far ones and those that cannot run count nothing.
  EXPECT_NEAR(FactorOf({1.0, 2.0, std::numeric_limits<double>::infinity()}, 0.1), 1.0, 1e-12);
}

TEST(SelectionShiftTest, PartsAndOrderDoNotMatter) {
  const std::vector<double> seconds = {1.0, 1.02, 1.05, 1.11, 1.3};
  SelectionShift parts(1.0, 0.05);
  parts.Add(std::vector<double>{1.3, 1.02});
  parts.Add(std::vector<double>{1.0, 1.11, 1.05});
  EXPECT_NEAR(parts.Factor(), FactorOf(seconds, 0.05), 1e-15);
}

struct Bias {
  double raw = 0.0, corrected = 0.0;  // mean of log(predicted / true) of the chosen kernel
};

// `draws` lists of `n` kernels with true log times from `truth` and normal errors of `error`.
Bias BiasOver(int draws, int n, double error, const std::function<double(std::mt19937_64&)>& truth) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0.0, error);
  Bias bias;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> predicted, actual;
    for (int i = 0; i < n; ++i) {
      actual.push_back(truth(random));
      predicted.push_back(std::exp(actual.back() + noise(random)));
    }
    const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    const double raw = std::log(predicted[static_cast<size_t>(chosen)]) - actual[static_cast<size_t>(chosen)];
    bias.raw += raw / draws;
    bias.corrected += (raw + std::log(FactorOf(predicted, error))) / draws;
  }
  return bias;
}

// The law: where the noise model holds, two thirds of the bias and more go, for a few kernels and for many, whatever
// the true times are distributed like. What is left is the smoothing of f.
TEST(SelectionShiftTest, MostOfTheBiasGoesOnSyntheticLists) {
  std::normal_distribution<double> normal(0.0, 0.3);
  std::exponential_distribution<double> bounded(1 / 0.3);  // many near the fastest possible
  std::uniform_real_distribution<double> level(0.0, 1.5);
  const std::function<double(std::mt19937_64&)> truths[] = {
      [&](auto& r) { return normal(r); }, [&](auto& r) { return bounded(r); }, [&](auto& r) { return level(r); }};
  for (const auto& truth : truths) {
    for (const int n : {30, 100, 500}) {
      for (const double error : {0.04, 0.07, 0.1}) {
        const Bias bias = BiasOver(1000, n, error, truth);
        EXPECT_LT(bias.raw, 0.0);
        EXPECT_LT(std::fabs(bias.corrected), 0.4 * std::fabs(bias.raw)) << n << " kernels, error " << error;
      }
    }
  }
}

// Equally fast kernels: the whole gap between them is error.
TEST(SelectionShiftTest, ClonesAreHalfRecovered) {
  const Bias bias = BiasOver(1000, 100, 0.06, [](auto&) { return 0.0; });
  EXPECT_LT(bias.raw, -2.0 * 0.06);  // the smallest of 100 normals lies 2.5 deviations low
  EXPECT_GT(bias.corrected, 0.55 * bias.raw);
  EXPECT_LT(bias.corrected, 0.0);
}

}  // namespace
}  // namespace portolan
