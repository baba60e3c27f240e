#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(ShardingRuleTest, EveryOtherLayoutForAllTables) {
  RuleTester test(MakeShardingRule());
  EXPECT_EQ(test.Options(), (Options{"table", "column", "row"}));
  test.Get("row", MathsClass::kReassociates, {"sharding"});
  test.recipe().sharding = Sharding::kRow;
  EXPECT_EQ(test.Options(), (Options{"auto", "table", "column"}));
}

// Layouts of single tables give way: the same setting without them is a change too.
TEST(ShardingRuleTest, ReplacesWhatIsSaidOfSingleTables) {
  RuleTester test(MakeShardingRule());
  test.recipe().tables["t"] = {Sharding::kColumn, 2};
  EXPECT_EQ(test.Options(), (Options{"auto", "table", "column", "row"}));
  for (const Change& change : test.Propose()) EXPECT_TRUE(change.recipe.tables.empty());
}

TEST(ShardingRuleTest, OneDevice) {
  RuleTester test(MakeShardingRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device holds every table");
}

}  // namespace
}  // namespace portolan
