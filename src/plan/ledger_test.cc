#include "plan/ledger.h"

#include "plan/test_inputs.h"

namespace portolan {
namespace {

// 10 ms to 8 ms by 1 ms of products and 1 ms of exchanges. With products wrong by 10 % and exchanges by 30 %, a fifth
// of what is saved is in doubt: 1.6 ms are sure, 10 / 8.4 - 1 = 19 %.
TEST(LedgerTest, LowerBoundByHand) {
  Step step;
  step.rate_before = 100;
  step.rate_after = 125;
  step.busy_before[static_cast<size_t>(Category::kGemm)] = Seconds(5e-3);
  step.busy_after[static_cast<size_t>(Category::kGemm)] = Seconds(4e-3);
  step.busy_before[static_cast<size_t>(Category::kSparseExchange)] = Seconds(3e-3);
  step.busy_after[static_cast<size_t>(Category::kSparseExchange)] = Seconds(2e-3);
  TermErrors errors;
  errors.of_category[static_cast<size_t>(Category::kGemm)] = 0.1;
  errors.of_category[static_cast<size_t>(Category::kSparseExchange)] = 0.3;
  errors.of_step = 0.5;
  EXPECT_NEAR(GainLowerBound(step, errors), 10 / 8.4 - 1, 1e-12);
  // No kernel changed: the error of whole steps.
  step.busy_after = step.busy_before;
  EXPECT_NEAR(GainLowerBound(step, errors), 10.0 / 9 - 1, 1e-12);
  // Terms that may be wrong by more than all of it: nothing is sure.
  errors.of_step = 3;
  EXPECT_EQ(GainLowerBound(step, errors), 0);
  errors.of_step = 0;
  EXPECT_NEAR(GainLowerBound(step, errors), 0.25, 1e-12);
}

LedgerStart StartOf(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  LedgerStart start;
  start.recipe = recipe;
  start.estimate = EstimateOrFail(model, recipe, cluster);
  return start;
}
Step Taken(const std::string& rule, const std::string& option) {
  Step step;
  step.change.rule = rule;
  step.change.option = option;
  return step;
}

// A change that gains nothing is dropped with its reason; one that gains is an entry, priced by the estimate.
TEST(LedgerTest, WhatGainsNothingIsDropped) {
  const Model model = DataModel("rm2");
  const Cluster cluster = TestCluster("8xmi350x");
  const LedgerStart start = StartOf(model, DefaultRecipe(), cluster);
  SearchResult search;
  search.steps = {Taken("recompute", "all"), Taken("graph_capture", "graph")};
  search.recipe = start.recipe;
  search.estimate = start.estimate;
  EstimateMemo memo;
  const Ledger ledger = ValueOrFail(BuildLedger(model, cluster, start, search, TermErrors(), &memo));
  ASSERT_EQ(ledger.entries.size(), 1u);
  EXPECT_EQ(ledger.entries[0].step.change.rule, "graph_capture");
  EXPECT_EQ(ledger.entries[0].step.before, start.estimate.step);
  ASSERT_EQ(ledger.dropped.size(), 1u);
  EXPECT_EQ(ledger.dropped[0].rule, "recompute");
  EXPECT_NE(ledger.dropped[0].reason.find("no gain"), std::string::npos);
  EXPECT_EQ(ledger.recipe.recompute, Recompute::kNone);
  EXPECT_EQ(ledger.recipe.launch, Launch::kGraph);
  EXPECT_EQ(ledger.estimate.step, EstimateOrFail(model, ledger.recipe, cluster).step);
}

// Nothing gained: the start itself.
TEST(LedgerTest, AllDropped) {
  const Model model = DataModel("rm2");
  const Cluster cluster = TestCluster("8xmi350x");
  const LedgerStart start = StartOf(model, DefaultRecipe(), cluster);
  SearchResult search;
  search.steps = {Taken("recompute", "all"), Taken("dense_parallelism", "fully_sharded")};
  search.recipe = start.recipe;
  search.estimate = start.estimate;
  EstimateMemo memo;
  const Ledger ledger = ValueOrFail(BuildLedger(model, cluster, start, search, TermErrors(), &memo));
  EXPECT_TRUE(ledger.entries.empty());
  EXPECT_EQ(ledger.dropped.size(), 2u);
  EXPECT_EQ(WriteRecipe(ledger.recipe), WriteRecipe(start.recipe));
  EXPECT_EQ(ledger.estimate.step, start.estimate.step);
}

// A change that does not apply again here, though the search took it: all are one entry, as the search priced them.
TEST(LedgerTest, WhatDoesNotApplyAgainIsOneEntry) {
  const Model model = DataModel("rm2");
  const Cluster cluster = TestCluster("8xmi350x");
  const LedgerStart start = StartOf(model, DefaultRecipe(), cluster);
  SearchResult search;
  search.steps = {Taken("host_tables", "1/0.01"), Taken("graph_capture", "graph")};
  search.recipe = start.recipe;
  search.recipe.launch = Launch::kGraph;
  search.estimate = EstimateOrFail(model, search.recipe, cluster);
  EstimateMemo memo;
  const Ledger ledger = ValueOrFail(BuildLedger(model, cluster, start, search, TermErrors(), &memo));
  ASSERT_EQ(ledger.entries.size(), 1u);
  EXPECT_EQ(ledger.entries[0].step.change.rule, "host_tables + graph_capture");
  EXPECT_EQ(ledger.entries[0].step.before, start.estimate.step);
  EXPECT_EQ(ledger.entries[0].step.after, search.estimate.step);
}

TEST(LedgerTest, AppliesAgainOnlyWhatTheRuleProposes) {
  const Model model = DataModel("rm2");
  const Cluster cluster = TestCluster("8xmi350x");
  std::string why_not;
  const std::optional<Recipe> both = ApplyAgain(Taken("graph_capture + replicate_tables", "graph + 1e+06").change,
                                                model, DefaultRecipe(), cluster, &why_not);
  ASSERT_TRUE(both) << why_not;
  EXPECT_EQ(both->launch, Launch::kGraph);
  EXPECT_EQ(both->data_parallel_max, Bytes(1e6));
  EXPECT_FALSE(ApplyAgain(Taken("graph_capture", "graph").change, model, *both, cluster, &why_not));
  EXPECT_FALSE(why_not.empty());
}

}  // namespace
}  // namespace portolan
