#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GemmDtypeRuleTest, NarrowerFormatsThatTheDeviceHas) {
  RuleTester test(MakeGemmDtypeRule());
  test.Get("fp8_e4m3", MathsClass::kChangesMaths, {"gemm"});
  test.recipe().gemm = DType::kTf32;
  test.recipe().activation = DType::kFp32;
  EXPECT_EQ(test.Options(), (Options{"bf16", "fp8_e4m3"})) << "single blocks only from 16-bit activations";
  test.Get("bf16", MathsClass::kChangesMaths, {"gemm", "activation"});
}

// Blocks with weights, the one with most of them first; back again one by one.
TEST(GemmDtypeRuleTest, BlockByBlock) {
  RuleTester test(MakeGemmDtypeRule());
  EXPECT_EQ(test.Options(), (Options{"fp8_e4m3", "fp8_e4m3 in top", "fp8_e4m3 in bottom"}));
  Change change = test.Get("fp8_e4m3 in top", MathsClass::kChangesMaths, {"gemm_by_block", "\"top\""});
  EXPECT_EQ(change.recipe.GemmOf("top"), DType::kFp8E4m3);
  EXPECT_EQ(change.recipe.GemmOf("bottom"), DType::kBf16);
  test.recipe() = change.recipe;
  EXPECT_EQ(test.Options(), (Options{"fp8_e4m3", "bf16 in top", "fp8_e4m3 in bottom"}));
  change = test.Get("bf16 in top", MathsClass::kChangesMaths, {"gemm_by_block", "\"top\""});
  EXPECT_TRUE(change.recipe.gemm_by_block.empty());
  // All at once takes the exceptions away.
  EXPECT_TRUE(test.Get("fp8_e4m3", MathsClass::kChangesMaths, {"gemm", "gemm_by_block", "\"top\""})
                  .recipe.gemm_by_block.empty());
}

TEST(GemmDtypeRuleTest, NoneOnA100BelowBf16) {
  RuleTester test(MakeGemmDtypeRule());
  test.On("8xa100");
  EXPECT_EQ(test.WhyNot(), "the device has no narrower matrix format");
}

}  // namespace
}  // namespace portolan
