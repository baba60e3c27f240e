#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(RecomputeRuleTest, EveryOtherDegree) {
  RuleTester test(MakeRecomputeRule());
  EXPECT_EQ(test.Options(), (Options{"cheap", "all"}));
  test.Get("all", MathsClass::kExact, {"recompute"});
  test.recipe().recompute = Recompute::kAll;
  EXPECT_EQ(test.Options(), (Options{"none", "cheap"}));
}

TEST(RecomputeRuleTest, ListedBlocksGiveWay) {
  RuleTester test(MakeRecomputeRule());
  test.recipe().recompute = Recompute::kListed;
  test.recipe().recompute_blocks = {"top"};
  for (const Change& change : test.Propose()) EXPECT_TRUE(change.recipe.recompute_blocks.empty());
  EXPECT_EQ(test.Options(), (Options{"none", "cheap", "all"}));
}

}  // namespace
}  // namespace portolan
