#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(IndexDedupRuleTest, UnpooledFeaturesAndBack) {
  RuleTester test(MakeIndexDedupRule());
  test.model() = RuleTestModel(kSequenceModel);
  const Change change = test.Get("before_exchange", MathsClass::kReassociates, {"dedup"});
  test.recipe() = change.recipe;
  test.Get("none", MathsClass::kReassociates, {"dedup"});
}

TEST(IndexDedupRuleTest, DoesNotApply) {
  RuleTester test(MakeIndexDedupRule());
  EXPECT_EQ(test.WhyNot(), "every feature is pooled: the owner sends one sum a bag, not its rows");
  test.model() = RuleTestModel(kSequenceModel);
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device exchanges nothing");
  test.On("8xh100");
  test.recipe().launch = Launch::kGraph;
  EXPECT_EQ(test.WhyNot(), "the step is captured in a graph, which fixes how many rows are exchanged");
}

}  // namespace
}  // namespace portolan
