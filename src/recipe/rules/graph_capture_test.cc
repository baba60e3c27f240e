#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GraphCaptureRuleTest, FixedSizesOnly) {
  RuleTester test(MakeGraphCaptureRule());
  const Change change = test.Get("graph", MathsClass::kExact, {"launch"});
  test.recipe() = change.recipe;
  EXPECT_EQ(test.WhyNot(), "the step is captured already");
}

TEST(GraphCaptureRuleTest, SizesThatChangeAreNotCaptured) {
  const char* why = "tensor sizes change from batch to batch (sequences, distinct rows): a graph fixes them";
  RuleTester test(MakeGraphCaptureRule());
  test.recipe().dedup = IndexDedup::kBeforeExchange;
  EXPECT_EQ(test.WhyNot(), why);
  test.recipe().dedup = IndexDedup::kNone;
  test.model() = RuleTestModel(kSequenceModel);
  EXPECT_EQ(test.WhyNot(), why);
}

}  // namespace
}  // namespace portolan
