#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GradientDtypeRuleTest, HalvesFp32Gradients) {
  RuleTester test(MakeGradientDtypeRule());
  test.Get("bf16", MathsClass::kChangesMaths, {"dense_gradient"});
}

TEST(GradientDtypeRuleTest, DoesNotApply) {
  RuleTester test(MakeGradientDtypeRule());
  test.recipe().dense_gradient_comm = DType::kFp16;
  EXPECT_EQ(test.WhyNot(), "dense gradients are reduced in 16 bits already");
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device reduces nothing");
}

}  // namespace
}  // namespace portolan
