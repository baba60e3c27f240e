#include "plan/fit_constants.h"

#include <fmt/format.h>

#include <set>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

const std::vector<FitPoint>& Points() {
  static const std::vector<FitPoint> kPoints = [] {
    const auto entries = ValueOrFail(LoadValidation(TestDataDirs()));
    return ValueOrFail(FitPoints(entries, TestCatalogue(), TestDataDirs()));
  }();
  return kPoints;
}

double Value(const StepConstants& constants, const FittedConstant& fitted) {
  return fitted.factor != nullptr ? constants.*fitted.factor : constants.step_overhead.value;
}

TEST(FitConstantsTest, ThePointsAreSeveralChipsOfTwoVendors) {
  std::set<std::string> chips;
  for (const FitPoint& point : Points()) chips.insert(point.accelerator);
  EXPECT_GE(chips.size(), 5u);
  EXPECT_TRUE(chips.count("h100") > 0 && chips.count("mi350x") > 0);
}

// The values in step_constants.cc are what the fit gives today.
TEST(FitConstantsTest, SharedConstantsAreTheFit) {
  const StepConstants shared = SharedStepConstants();
  const StepConstants fitted = FitStepConstants(Points());
  for (const FittedConstant& constant : FittedConstants()) {
    const double value = Value(fitted, constant);
    EXPECT_NEAR(Value(shared, constant), value, 0.02 * value)
        << constant.name << ": run fit_step_constants and write its value into step_constants.cc";
  }
}

TEST(FitConstantsTest, TheFitIsDeterministicAndBetterThanThePriors) {
  const StepConstants a = FitStepConstants(Points());
  const StepConstants b = FitStepConstants(Points());
  StepConstants priors = SharedStepConstants();
  for (const FittedConstant& constant : FittedConstants()) {
    EXPECT_EQ(Value(a, constant), Value(b, constant));
    if (constant.factor != nullptr) priors.*constant.factor = constant.prior;
  }
  double fitted_error = 0, prior_error = 0;
  for (const FitPoint& point : Points()) {
    fitted_error += std::abs(FitError(point, a));
    prior_error += std::abs(FitError(point, priors));
  }
  EXPECT_LT(fitted_error, prior_error);
}

TEST(FitConstantsTest, NothingToFitLeavesThePriors) {
  const StepConstants constants = FitStepConstants({});
  for (const FittedConstant& constant : FittedConstants()) {
    EXPECT_NEAR(Value(constants, constant), constant.prior, 1e-3 * constant.prior) << constant.name;
  }
}

// Constants fitted to the other chips predict the one left out.
TEST(FitConstantsTest, EachChipLeftOutIsPredictedWithin20Percent) {
  fmt::print("{:<12} {:<24} {:>10} {:>10}\n", "left out", "step", "error", "fitted in");
  for (const LeaveOneOut& left_out : FitLeavingEachOut(Points())) {
    EXPECT_FALSE(left_out.errors.empty());
    for (const auto& [id, error] : left_out.errors) {
      double inside = 0;
      for (const FitPoint& point : Points()) {
        if (point.id == id) inside = FitError(point, SharedStepConstants());
      }
      fmt::print("{:<12} {:<24} {:>+9.1f}% {:>+9.1f}%\n", left_out.accelerator, id, 100 * error, 100 * inside);
      EXPECT_LE(std::abs(error), 0.20) << id;
    }
  }
}

}  // namespace
}  // namespace portolan
