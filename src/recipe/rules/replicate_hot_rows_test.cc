#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(ReplicateHotRowsRuleTest, SetsTheCountAndNothingElse) {
  RuleTester test(MakeReplicateHotRowsRule());
  for (Feature& feature : test.model().features) feature.zipf_exponent = 1.0;
  EXPECT_EQ(test.Options(), (Options{"10000", "30000", "100000"}));
  const Change change = test.Get("30000", MathsClass::kReassociates, {"replicated_hot_rows"});
  EXPECT_EQ(change.recipe.hot_rows, 30000);
  test.recipe().hot_rows = 30000;
  EXPECT_EQ(test.Options(), (Options{"0", "10000", "100000"}));
}

TEST(ReplicateHotRowsRuleTest, NeedsSkew) {
  RuleTester test(MakeReplicateHotRowsRule());  // the model states no exponent
  EXPECT_EQ(test.WhyNot(), "no pooled feature states a skew (zipf_exponent)");
}

TEST(ReplicateHotRowsRuleTest, UnpooledRowsAreForDedup) {
  RuleTester test(MakeReplicateHotRowsRule());
  for (Feature& feature : test.model().features) feature.zipf_exponent = 1.0;
  for (FeatureGroup& group : test.model().groups) {
    group.pooling = Pooling::kNone;
    group.tokens = 1;
  }
  EXPECT_EQ(test.WhyNot(), "no pooled feature states a skew (zipf_exponent)");
}

TEST(ReplicateHotRowsRuleTest, OneDevice) {
  RuleTester test(MakeReplicateHotRowsRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device exchanges nothing");
}

}  // namespace
}  // namespace portolan
