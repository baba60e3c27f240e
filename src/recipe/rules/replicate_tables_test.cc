#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(ReplicateTablesRuleTest, Thresholds) {
  RuleTester test(MakeReplicateTablesRule());  // 8 MB is the default and so not proposed
  EXPECT_EQ(test.Options(), (Options{"0", "1e+06", "3.2e+07", "1.28e+08", "5.12e+08", "2e+09", "8e+09"}));
  const Change change = test.Get("0", MathsClass::kReassociates, {"data_parallel_max_bytes"});
  EXPECT_EQ(change.what, "no table is replicated");
}

TEST(ReplicateTablesRuleTest, OnlyWhereShardingIsAutomatic) {
  RuleTester test(MakeReplicateTablesRule());
  test.recipe().sharding = Sharding::kTable;
  EXPECT_EQ(test.WhyNot(), "sharding is fixed for all tables");
}

TEST(ReplicateTablesRuleTest, OneDevice) {
  RuleTester test(MakeReplicateTablesRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device holds every table");
}

}  // namespace
}  // namespace portolan
