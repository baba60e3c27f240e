#include "plan/plan.h"

#include <algorithm>
#include <filesystem>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

Plan PlanOrFail(const Model& model, const std::string& from, const std::string& to, const PlanOptions& options) {
  return ValueOrFail(MakePlan(model, TestCluster(from), TestCluster(to), options));
}
PlanOptions OptionsFor(const Model& model) {
  PlanOptions options;
  options.start = model.published_recipe.empty() ? DefaultRecipe() : DataRecipe(model.published_recipe);
  return options;
}

constexpr const char* kModels[] = {"mlperf_dlrm_dcnv2", "mlperf_dlrmv4_hstu", "onetrans_large", "rm2", "production_66"};

// What holds for every plan.
void CheckLaws(const Plan& plan, const Model& model, const std::string& to) {
  ASSERT_TRUE(plan.codesigned.estimate.memory.Fits());
  EXPECT_GE(plan.speedup, 1);
  EXPECT_DOUBLE_EQ(plan.speedup, plan.codesigned.estimate.samples_per_s / plan.baseline.samples_per_s);
  double product = 1;
  // Entries chain from the ported baseline to the co-designed recipe: steps, rates, memory, and what binds.
  const StepEstimate& last = plan.codesigned.estimate;
  Bytes memory = plan.baseline.memory.total;
  Seconds step = plan.baseline.step;
  std::string binding = plan.baseline.binding;
  for (const LedgerEntry& entry : plan.ledger) {
    SCOPED_TRACE(entry.step.change.rule);
    product *= 1 + entry.gain_to;
    EXPECT_EQ(entry.step.memory_before, memory);
    EXPECT_EQ(entry.step.before, step);
    EXPECT_EQ(entry.step.binding_before, binding);
    memory = entry.step.memory_after;
    step = entry.step.after;
    binding = entry.step.binding_after;
    EXPECT_GT(entry.gain_to, kLeastGain);
    EXPECT_GE(entry.gain_anywhere, 0);
    EXPECT_GE(entry.gain_only_here, -1e-12);
    EXPECT_NEAR((1 + entry.gain_anywhere) * (1 + entry.gain_only_here), 1 + entry.gain_to, 1e-12);
    EXPECT_LE(entry.gain_anywhere, entry.gain_to);
    EXPECT_LE(entry.gain_anywhere, std::max(0.0, entry.gain_from.value_or(0)));
    EXPECT_LT(entry.gain_lower_bound, entry.gain_to);
    EXPECT_GT(entry.gain_lower_bound, 0);
    EXPECT_EQ(entry.not_on_from.empty(), entry.gain_from.has_value());
    EXPECT_FALSE(entry.step.repair);
  }
  EXPECT_EQ(memory, last.memory.total);
  EXPECT_EQ(step, last.step);
  EXPECT_EQ(binding, last.binding);
  EXPECT_NEAR(product, plan.speedup, 1e-9 * plan.speedup) << "the ledger's gains multiply to the speedup";
  EXPECT_EQ(plan.no_gain_reason.empty(), plan.speedup >= 1.005);
  // The recipe as `plan --out` writes it, read again and priced by `estimate`.
  const Result<YamlValue> text = YamlValue::Parse(WriteRecipe(plan.codesigned.recipe), "out.yaml");
  ASSERT_TRUE(text);
  const StepEstimate again = EstimateOrFail(model, ValueOrFail(ReadRecipe(*text)), TestCluster(to));
  EXPECT_EQ(again.step, plan.codesigned.estimate.step);
  EXPECT_EQ(again.memory.total, plan.codesigned.estimate.memory.total);
}

TEST(PlanTest, PublishedModelsBothWays) {
  for (const char* id : kModels) {
    const Model model = DataModel(id);
    for (const auto& [from, to] : {std::pair("8xb200", "8xmi350x"), std::pair("8xmi350x", "8xb200")}) {
      SCOPED_TRACE(std::string(id) + " to " + to);
      const Plan plan = PlanOrFail(model, from, to, OptionsFor(model));
      CheckLaws(plan, model, to);
      EXPECT_EQ(plan.baseline_source, "searched");
      EXPECT_TRUE(plan.on_from.memory.Fits());
      EXPECT_EQ(plan.baseline.global_batch, plan.codesigned.estimate.global_batch);
    }
  }
}

// Every other shipped model, one way each, and chips of other generations.
TEST(PlanTest, LawsOnTheOtherModels) {
  constexpr std::pair<const char*, const char*> kMoves[] = {
      {"8xb200", "8xmi350x"}, {"8xmi350x", "8xb200"}, {"8xh100", "8xmi300x"}, {"8xmi300x", "8xh100"}};
  std::vector<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("data/models")) {
    const std::string id = entry.path().stem().string();
    if (std::find(std::begin(kModels), std::end(kModels), id) == std::end(kModels)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_GE(ids.size(), 13u);
#ifdef PORTOLAN_SANITIZED
  constexpr size_t kStride = 4;  // a sanitizer is ten times slower
#else
  constexpr size_t kStride = 1;
#endif
  for (size_t i = 0; i < ids.size(); i += kStride) {
    const auto& [from, to] = kMoves[i % std::size(kMoves)];
    SCOPED_TRACE(ids[i] + " from " + from + " to " + to);
    const Model model = DataModel(ids[i]);
    CheckLaws(PlanOrFail(model, from, to, OptionsFor(model)), model, to);
  }
}

// With everything allowed the laws hold too, and the recipe says what was used.
TEST(PlanTest, LawsWithEverythingAllowed) {
  for (const char* id : {"rm2", "nvidia_hstu_8l"}) {
    SCOPED_TRACE(id);
    const Model model = DataModel(id);
    PlanOptions options = OptionsFor(model);
    options.baseline = options.start;
    for (const auto& rule : AllRules()) options.allow.insert(rule->name());
    const Plan plan = PlanOrFail(model, "16xb200", "16xmi350x", options);
    CheckLaws(plan, model, "16xmi350x");
    EXPECT_GT(plan.speedup, 1);
  }
}

// The searched baseline is the old machine's own optimum, under the same rules.
TEST(PlanTest, BaselineIsTheOptimumOfTheOldMachine) {
  const Model model = DataModel("production_66");
  const PlanOptions options = OptionsFor(model);
  const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", options);
  const SearchResult own = ValueOrFail(SearchRecipe(model, options.start, TestCluster("8xb200"), {}));
  EXPECT_EQ(WriteRecipe(plan.baseline_recipe), WriteRecipe(own.recipe));
  EXPECT_EQ(plan.on_from.step, own.estimate.step);
  EXPECT_EQ(WriteRecipe(plan.ported_recipe), WriteRecipe(own.recipe)) << "ported unchanged where it fits";
  // Ported with the tables where the old machine had them, unless placing them again gains nothing to speak of.
  const Cluster to = TestCluster("8xmi350x");
  const Seconds as_they_were = ValueOrFail(EstimateStepPlaced(model, own.recipe, to, own.estimate.placement)).step;
  const Seconds placed_again = EstimateOrFail(model, own.recipe, to).step;
  const bool gains = as_they_were / placed_again - 1 > kLeastGain;
  EXPECT_EQ(plan.baseline.step, gains ? as_they_were : placed_again);
}

// Nothing that is found for the new machine would have been better on the old one than its own recipe: what a local
// search missed there is no gain of the new machine.
TEST(PlanTest, TheBaselineMissesNothingThatTheNewMachineFinds) {
  for (const char* id : {"mlperf_dlrm_dot", "production_66"}) {
    SCOPED_TRACE(id);
    const Model model = DataModel(id);
    const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", OptionsFor(model));
    CheckLaws(plan, model, "8xmi350x");
    const StepEstimate there = EstimateOrFail(model, plan.codesigned.recipe, TestCluster("8xb200"));
    EXPECT_LE(there.samples_per_s, 1.0011 * plan.on_from.samples_per_s);
  }
}

// More rows than the new machine's HBM: they move to host memory, named as what makes the baseline fit, and the plan
// says what it costs; back on the old machine nothing has to.
TEST(PlanTest, HostMemoryMakesItFit) {
  const Model model = ModelFromText(
      "model: crowded\ndense_features: 13\ntables:\n  - {name: users, rows: 6e9, dim: 64}\n  - {name: items, rows: "
      "1e9, dim: 64}\nfeatures:\n  - {name: user, table: users, lookups: 1, zipf_exponent: 0.9}\n"
      "  - {name: history, table: items, lookups: 60, zipf_exponent: 1.05}\nblocks:\n"
      "  - {name: bottom, type: mlp, input: dense, widths: [512, 64]}\n"
      "  - {name: joined, type: concat, inputs: [bottom, embeddings]}\n"
      "  - {name: top, type: mlp, input: joined, widths: [1024, 512, 1]}\n");
  const Plan plan = PlanOrFail(model, "8xmi350x", "8xb200", OptionsFor(model));
  CheckLaws(plan, model, "8xb200");
  ASSERT_EQ(plan.repairs.size(), 1u);
  EXPECT_EQ(plan.repairs[0].change.rule, "host_tables");
  EXPECT_GT(plan.codesigned.estimate.memory.host_tables, Bytes(1e12));
  EXPECT_EQ(plan.on_from.memory.host_tables, Bytes(0));
  const Plan back = PlanOrFail(model, "8xb200", "8xmi350x", OptionsFor(model));
  CheckLaws(back, model, "8xmi350x");
  EXPECT_TRUE(back.repairs.empty());
}

TEST(PlanTest, FromAMachineToItselfGainsNothing) {
  for (const char* id : kModels) {
    SCOPED_TRACE(id);
    const Model model = DataModel(id);
    const Plan plan = PlanOrFail(model, "8xmi350x", "8xmi350x", OptionsFor(model));
    EXPECT_DOUBLE_EQ(plan.speedup, 1);
    EXPECT_TRUE(plan.ledger.empty());
    EXPECT_NE(plan.no_gain_reason.find("the recipe that is best on the old machine is the best one found here too"),
              std::string::npos)
        << plan.no_gain_reason;
  }
}

// 600 GB of tables: what a device of 180 GB must recompute, one of 288 GB keeps.
TEST(PlanTest, Dlrmv4KeepsItsActivationsIn288Gigabytes) {
  const Model model = DataModel("mlperf_dlrmv4_hstu");
  const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", OptionsFor(model));
  EXPECT_EQ(plan.baseline_recipe.recompute, Recompute::kCheap);
  EXPECT_EQ(plan.codesigned.recipe.recompute, Recompute::kNone);
  const LedgerEntry* recompute = nullptr;
  for (const LedgerEntry& entry : plan.ledger) {
    if (entry.step.change.rule == "recompute") recompute = &entry;
  }
  ASSERT_NE(recompute, nullptr);
  EXPECT_EQ(recompute->not_on_from, "does not fit: 259 of 180 GB");
  EXPECT_EQ(recompute->gain_anywhere, 0);
  EXPECT_EQ(recompute->gain_only_here, recompute->gain_to);
  EXPECT_GT(recompute->gain_to, 0.03);
  EXPECT_LT(recompute->gain_to, 0.19) << "Qwen3-30B gained 19 % from 5 recomputed layers to 0 (Primus PR #1011)";
  ASSERT_TRUE(plan.time_to_quality_ratio);
  EXPECT_DOUBLE_EQ(*plan.time_to_quality_ratio, plan.speedup) << "the batch is the same";
}

// Back to 180 GB: the least change that makes it fit is named and the baseline runs with it.
TEST(PlanTest, RepairsOfThePortedBaselineAreNamed) {
  const Model model = DataModel("mlperf_dlrmv4_hstu");
  const Plan plan = PlanOrFail(model, "8xmi350x", "8xb200", OptionsFor(model));
  ASSERT_EQ(plan.repairs.size(), 1u);
  EXPECT_EQ(plan.repairs[0].change.rule, "recompute");
  EXPECT_TRUE(plan.baseline.memory.Fits());
  EXPECT_NE(WriteRecipe(plan.ported_recipe), WriteRecipe(plan.baseline_recipe));
  EXPECT_NE(plan.no_gain_reason.find("with what makes it fit here"), std::string::npos) << plan.no_gain_reason;
}

// The user's recipe is the baseline as it is; what both machines would gain is told apart from what only one does.
TEST(PlanTest, GivenBaseline) {
  const Model model = DataModel("production_66");
  PlanOptions options = OptionsFor(model);
  options.baseline = options.start;
  const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", options);
  CheckLaws(plan, model, "8xmi350x");
  EXPECT_EQ(plan.baseline_source, "given");
  EXPECT_EQ(WriteRecipe(plan.ported_recipe), WriteRecipe(options.start));
  EXPECT_GT(plan.speedup, 1.01);
  double anywhere = 0;
  for (const LedgerEntry& entry : plan.ledger) anywhere += entry.gain_anywhere;
  EXPECT_GT(anywhere, 0);
}

// A local batch of 1,024 on 8 devices stays a global batch of 8,192 on 16.
TEST(PlanTest, TheGlobalBatchMovesWithTheJob) {
  const Model model = DataModel("rm2");
  const Plan plan = PlanOrFail(model, "8xb200", "16xmi350x", OptionsFor(model));
  CheckLaws(plan, model, "16xmi350x");
  EXPECT_EQ(plan.baseline.global_batch, 8192);
}

// A bigger batch lengthens the step and still gains: gains are of samples/s, and multiply.
TEST(PlanTest, GainsAreOfSamplesPerSecond) {
  const Model model = DataModel("rm2");
  PlanOptions options = OptionsFor(model);
  options.baseline = options.start;
  options.allow = {"batch"};
  const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", options);
  CheckLaws(plan, model, "8xmi350x");
  EXPECT_GT(plan.codesigned.estimate.global_batch, plan.baseline.global_batch);
}

TEST(PlanTest, WhatFitsNowhereIsAnAnswer) {
  const Model model = ModelFromText(
      "model: vast\ndense_features: 8\ntables:\n  - {name: t, rows: 1e11, dim: 100, lookups: 1}\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [64]}\n");
  const Plan plan = PlanOrFail(model, "8xb200", "8xmi350x", OptionsFor(model));
  EXPECT_FALSE(plan.codesigned.estimate.memory.Fits());
  EXPECT_EQ(plan.no_gain_reason, "no recipe fits on the new machine");
  EXPECT_TRUE(plan.dividends.empty());
}

TEST(PlanTest, ErrorsOfTheBaselineAreErrors) {
  PlanOptions options;
  options.start = DefaultRecipe();
  options.baseline = DefaultRecipe();
  options.baseline->structure = {{"pad_dimension", 8}};
  const Result<Plan> plan = MakePlan(DataModel("rm2"), TestCluster("8xb200"), TestCluster("8xmi350x"), options);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message,
            "recipe 'default': structure[0].rule: no structure rule is named 'pad_dimension'; did you mean "
            "'pad_dimensions'?; known: pad_dimensions, merge_shared_input, jagged_packing");
}

}  // namespace
}  // namespace portolan
