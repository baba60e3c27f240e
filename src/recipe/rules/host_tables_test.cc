#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

// Two tables of 400 GB and one of 40 GB over eight devices of 80 GB: 105 GB a device.
Model Crowded() {
  return RuleTestModel(
      "model: crowded\ntables:\n  - {name: a, rows: 1e9, dim: 100, lookups: 3}\n  - {name: b, rows: 1e9, dim: 100, "
      "lookups: 3}\n  - {name: c, rows: 1e8, dim: 100, lookups: 3}\n"
      "blocks:\n  - {name: top, type: mlp, input: embeddings, widths: [1]}\ntraining: {embedding_optimizer: sgd}\n");
}

TEST(HostTablesRuleTest, TheLargestTablesMoveFirst) {
  RuleTester test(MakeHostTablesRule());
  test.model() = Crowded();
  // The two of 400 GB are of one size; then all three.
  const std::vector<std::string> options = test.Options();
  EXPECT_EQ(options, (Options{"2/0.5", "2/0.2", "2/0.05", "2/0.01", "3/0.5", "3/0.2", "3/0.05", "3/0.01"}));
  const Change change = test.Get("2/0.05", MathsClass::kExact, {"host_tables_min_bytes", "host_cache_fraction"});
  EXPECT_EQ(change.recipe.host_tables_min, Bytes(400e9));
  EXPECT_EQ(change.what,
            "the 2 tables of 400 GB and more in host memory, the hottest 5 % of their rows cached on the devices");
}

TEST(HostTablesRuleTest, BackToTheDevices) {
  RuleTester test(MakeHostTablesRule());
  test.recipe().host_tables_min = Bytes(1e6);
  EXPECT_EQ(test.Options(), Options{"none"}) << "small tables: nothing else to propose";
  test.Get("none", MathsClass::kExact, {"host_tables_min_bytes"});
}

TEST(HostTablesRuleTest, DoesNotApply) {
  RuleTester test(MakeHostTablesRule());
  EXPECT_EQ(test.WhyNot(), "tables and their state take 0 % of the devices' memory");
  test.model() = Crowded();
  test.recipe().sharding = Sharding::kDataParallel;
  EXPECT_EQ(test.WhyNot(), "every table is replicated");
  test.recipe().sharding = Sharding::kAuto;
  test.On("8xa30");
  EXPECT_EQ(test.WhyNot(), "a30 states no host_memory_bytes_per_device");
}

}  // namespace
}  // namespace portolan
