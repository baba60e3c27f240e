#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GradientOverlapRuleTest, ThereAndBack) {
  RuleTester test(MakeGradientOverlapRule());
  const Change change = test.Get("none", MathsClass::kExact, {"dense_gradient_overlap"});
  test.recipe() = change.recipe;
  test.Get("backward", MathsClass::kExact, {"dense_gradient_overlap"});
}

TEST(GradientOverlapRuleTest, OneDevice) {
  RuleTester test(MakeGradientOverlapRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device reduces nothing");
}

}  // namespace
}  // namespace portolan
