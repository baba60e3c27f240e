#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(Sharding2dRuleTest, GroupsOfTwoAndMoreDevices) {
  RuleTester test(MakeSharding2dRule());
  EXPECT_EQ(test.Options(), (Options{"2 strided", "4 strided"}));
  const Change change = test.Get("4 strided", MathsClass::kChangesMaths, {"replicas"});
  EXPECT_EQ(change.recipe.replicas, 4);
  EXPECT_EQ(change.what,
            "4 groups of 2 devices with all tables each, copies of a shard next to each other; copies averaged every "
            "step");
  test.On("16xh100");
  EXPECT_EQ(test.Options(),
            (Options{"2 strided", "2 contiguous", "4 strided", "4 contiguous", "8 strided", "8 contiguous"}));
  test.Get("8 contiguous", MathsClass::kChangesMaths, {"replicas", "replica_layout"});
}

// The interval is the recipe's: no proposal averages more seldom.
TEST(Sharding2dRuleTest, BackAndOnTheRecipesInterval) {
  RuleTester test(MakeSharding2dRule());
  test.recipe().replicas = 2;
  test.recipe().replica_sync_steps = 50;
  EXPECT_EQ(test.Options(), (Options{"none", "4 strided"}));
  EXPECT_EQ(test.Get("4 strided", MathsClass::kChangesMaths, {"replicas"}).recipe.replica_sync_steps, 50);
  EXPECT_EQ(test.Get("none", MathsClass::kChangesMaths, {"replicas"}).recipe.replicas, 1);
}

TEST(Sharding2dRuleTest, DoesNotApply) {
  RuleTester test(MakeSharding2dRule());
  test.On("2xh100");
  EXPECT_EQ(test.WhyNot(), "fewer than four devices do not make two groups");
  test.On("8xh100");
  test.recipe().sharding = Sharding::kDataParallel;
  EXPECT_EQ(test.WhyNot(), "no table is sharded");
}

}  // namespace
}  // namespace portolan
