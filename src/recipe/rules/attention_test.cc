#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(AttentionRuleTest, FasterKernelsOnly) {
  RuleTester test(MakeAttentionRule());
  test.model() = RuleTestModel(kSequenceModel);
  test.recipe().attention = AttentionImplementation::kFramework;
  EXPECT_EQ(test.Options(), (Options{"triton", "vendor"}));
  test.Get("triton", MathsClass::kReassociates, {"attention"});
  test.recipe().attention = AttentionImplementation::kTriton;
  EXPECT_EQ(test.Options(), Options{"vendor"});
  test.recipe().attention = AttentionImplementation::kVendorTuned;
  EXPECT_EQ(test.WhyNot(), "the vendor's kernel is used already");
}

TEST(AttentionRuleTest, ModelsWithoutAttention) {
  RuleTester test(MakeAttentionRule());
  test.recipe().attention = AttentionImplementation::kFramework;
  EXPECT_EQ(test.WhyNot(), "the model has no attention");
}

}  // namespace
}  // namespace portolan
