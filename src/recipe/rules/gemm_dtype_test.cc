#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GemmDtypeRuleTest, NarrowerFormatsThatTheDeviceHas) {
  RuleTester test(MakeGemmDtypeRule());
  test.Get("fp8_e4m3", MathsClass::kChangesMaths, {"gemm"});
  test.recipe().gemm = DType::kTf32;
  test.recipe().activation = DType::kFp32;
  EXPECT_EQ(test.Options(), (Options{"bf16", "fp8_e4m3"}));
  test.Get("bf16", MathsClass::kChangesMaths, {"gemm", "activation"});
}

TEST(GemmDtypeRuleTest, NoneOnA100BelowBf16) {
  RuleTester test(MakeGemmDtypeRule());
  test.On("8xa100");
  EXPECT_EQ(test.WhyNot(), "the device has no narrower matrix format");
}

}  // namespace
}  // namespace portolan
