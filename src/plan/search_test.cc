#include "plan/search.h"

#include "plan/test_inputs.h"

namespace portolan {
namespace {

SearchResult SearchOrFail(const Model& model, const Recipe& start, const std::string& cluster,
                          const SearchOptions& options = {}) {
  return ValueOrFail(SearchRecipe(model, start, TestCluster(cluster), options));
}

struct Job {
  const char* model;
  const char* recipe;
  const char* cluster;
};
constexpr Job kJobs[] = {{"mlperf_dlrm_dcnv2", "hugectr_mlperf", "8xmi350x"},
                         {"mlperf_dlrmv4_hstu", "dlrmv4_mlperf", "8xmi350x"},
                         {"onetrans_large", "onetrans_primus", "8xb200"},
                         {"rm2", "", "8xh100"},
                         {"production_66", "", "8xb200"}};
Recipe StartOf(const Job& job) { return job.recipe[0] == '\0' ? DefaultRecipe() : DataRecipe(job.recipe); }

// Never slower than the start, every step faster than the one before and chained to it, never below the bound, and the
// result is what the estimate says of the recipe.
TEST(SearchTest, LawsOnPublishedModels) {
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.model);
    const Model model = DataModel(job.model);
    const SearchResult result = SearchOrFail(model, StartOf(job), job.cluster);
    const StepEstimate start = EstimateOrFail(model, StartOf(job), TestCluster(job.cluster));
    ASSERT_TRUE(start.memory.Fits());
    EXPECT_TRUE(result.estimate.memory.Fits());
    EXPECT_LE(result.estimate.step, start.step);
    EXPECT_GE(result.gap, 0);
    EXPECT_LE(result.lower_bound, result.estimate.step);
    Seconds before = start.step;
    for (const Step& step : result.steps) {
      EXPECT_FALSE(step.repair);
      EXPECT_EQ(step.before, before);
      EXPECT_LT(step.after, step.before);
      EXPECT_GT(step.rate_after, step.rate_before);
      EXPECT_NE(step.change.maths, MathsClass::kChangesMaths) << step.change.rule;
      before = step.after;
    }
    EXPECT_EQ(result.estimate.step, before);
    EXPECT_EQ(EstimateOrFail(model, result.recipe, TestCluster(job.cluster)).step, result.estimate.step);
    EXPECT_EQ(result.estimate.global_batch, start.global_batch) << "the batch is fixed unless it is allowed";
  }
}

TEST(SearchTest, RepeatsExactly) {
  const Model model = DataModel("production_66");
  const SearchResult a = SearchOrFail(model, DefaultRecipe(), "8xmi350x");
  const SearchResult b = SearchOrFail(model, DefaultRecipe(), "8xmi350x");
  EXPECT_EQ(WriteRecipe(a.recipe), WriteRecipe(b.recipe));
  EXPECT_EQ(a.estimate.step, b.estimate.step);
  EXPECT_EQ(a.estimates, b.estimates);
  ASSERT_EQ(a.rejected.size(), b.rejected.size());
  for (size_t i = 0; i < a.rejected.size(); ++i) EXPECT_EQ(a.rejected[i].reason, b.rejected[i].reason);
}

// From its own result the search finds nothing more.
TEST(SearchTest, ItsResultIsAnOptimum) {
  const Model model = DataModel("rm2");
  const SearchResult first = SearchOrFail(model, DefaultRecipe(), "8xmi350x");
  const SearchResult second = SearchOrFail(model, first.recipe, "8xmi350x");
  EXPECT_TRUE(second.steps.empty());
  EXPECT_EQ(second.estimate.step, first.estimate.step);
}

// fp8 products and bf16 gradients only by name; what is not named is listed with its gain and what it needs.
TEST(SearchTest, MathsChangesOnlyWhenAllowed) {
  const Model model = DataModel("mlperf_dlrmv4_hstu");
  const SearchResult without = SearchOrFail(model, DataRecipe("dlrmv4_mlperf"), "8xmi350x");
  EXPECT_EQ(without.recipe.gemm, DType::kBf16);
  bool told = false;
  for (const Rejected& rejected : without.rejected) {
    told = told || (rejected.rule == "gemm_dtype" &&
                    rejected.reason.find("changes the maths: needs --allow gemm_dtype") != std::string::npos);
  }
  EXPECT_TRUE(told);
  SearchOptions options;
  options.allow = {"gemm_dtype"};
  const SearchResult with = SearchOrFail(model, DataRecipe("dlrmv4_mlperf"), "8xmi350x", options);
  EXPECT_EQ(with.recipe.gemm, DType::kFp8E4m3);
  EXPECT_LT(with.estimate.step, without.estimate.step);
  EXPECT_EQ(with.recipe.embedding_row, without.recipe.embedding_row) << "no other rule was allowed";
  EXPECT_EQ(with.recipe.accumulation_steps, 1);
}

TEST(SearchTest, StructureIsKeptWhenAsked) {
  SearchOptions options;
  options.structure = SearchOptions::Structure::kKeep;
  const SearchResult result = SearchOrFail(DataModel("production_66"), DefaultRecipe(), "8xb200", options);
  EXPECT_TRUE(result.recipe.structure.empty());
  EXPECT_FALSE(SearchOrFail(DataModel("production_66"), DefaultRecipe(), "8xb200").recipe.structure.empty());
}

// Without recomputation DLRMv4 needs 259 GB a device: 180 GB hold it after the repair, which keeps the maths.
TEST(SearchTest, RepairsKeepTheMathsWhereTheyCan) {
  Recipe start = DataRecipe("dlrmv4_mlperf");
  start.recompute = Recompute::kNone;
  const Model model = DataModel("mlperf_dlrmv4_hstu");
  ASSERT_FALSE(EstimateOrFail(model, start, TestCluster("8xb200")).memory.Fits());
  const SearchResult result = SearchOrFail(model, start, "8xb200");
  ASSERT_TRUE(result.estimate.memory.Fits());
  ASSERT_FALSE(result.steps.empty());
  EXPECT_TRUE(result.steps[0].repair);
  EXPECT_EQ(result.steps[0].change.rule, "recompute");
  for (const Step& step : result.steps) EXPECT_NE(step.change.maths, MathsClass::kChangesMaths) << step.change.rule;
}

// Dense work that no recomputation makes fit: micro-batches do, named as what they are.
constexpr char kHuge[] =
    "model: huge\ndense_features: 8\ntables:\n  - {name: t, rows: 1e3, dim: 64, lookups: 1}\nblocks:\n"
    "  - {name: a, type: mlp, input: dense, widths: [64]}\n";

TEST(SearchTest, AccumulationRepairsWhenNothingElseFits) {
  Recipe start = DefaultRecipe();
  start.local_batch = 300000000;  // x 64 bf16 values and more: over 80 GB of activations
  const Model model = ModelFromText(kHuge);
  ASSERT_FALSE(EstimateOrFail(model, start, TestCluster("8xh100")).memory.Fits());
  const SearchResult result = SearchOrFail(model, start, "8xh100");
  EXPECT_TRUE(result.estimate.memory.Fits());
  bool accumulated = false;
  for (const Step& step : result.steps) {
    if (!step.repair || step.change.rule != "accumulation") continue;
    accumulated = true;
    EXPECT_EQ(step.change.maths, MathsClass::kChangesMaths);
  }
  EXPECT_TRUE(accumulated);
}

// 40 TB of rows on 8 x 80 GB: no recipe fits, and the answer says what would.
TEST(SearchTest, WhatCannotFitSaysWhatWould) {
  const Model model = ModelFromText(
      "model: vast\ndense_features: 8\ntables:\n  - {name: t, rows: 1e11, dim: 100, lookups: 1}\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [64]}\n");
  const SearchResult result = SearchOrFail(model, DefaultRecipe(), "8xh100");
  EXPECT_FALSE(result.estimate.memory.Fits());
  EXPECT_FALSE(result.estimate.memory.WhatWouldFit(TestCluster("8xh100")).empty());
  for (const Step& step : result.steps) EXPECT_TRUE(step.repair) << "nothing is sped up that does not fit";
}

// Whatever fits at all is found: a start that does not fit, of every published model that has a recipe that does.
TEST(SearchTest, FitsWhenAnythingFits) {
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.model);
    Recipe start = StartOf(job);
    start.sharding = Sharding::kDataParallel;  // every table on every device
    start.recompute = Recompute::kNone;
    EXPECT_TRUE(SearchOrFail(DataModel(job.model), start, job.cluster).estimate.memory.Fits());
  }
}

TEST(SearchTest, ProgressGoesForwardAndEndsAtOne) {
  SearchOptions options;
  double last = 0;
  int calls = 0;
  options.progress = [&](double done) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, 1);
    last = done;
    ++calls;
  };
  const SearchResult result = SearchOrFail(DataModel("rm2"), DefaultRecipe(), "8xh100", options);
  EXPECT_EQ(last, 1);
  EXPECT_GE(calls, result.estimates);
}

// A batch beyond the published points has no time to quality: it is told so, not compared.
TEST(SearchTest, UnlikeObjectivesAreNotCompared) {
  Model model = DataModel("rm2");
  model.samples_to_quality = {{4096, 1e6}, {8192, 1.1e6}};
  SearchOptions options;
  options.allow = {"batch"};
  const SearchResult result = SearchOrFail(model, DefaultRecipe(), "8xh100", options);
  EXPECT_LE(result.estimate.global_batch, 12288);
  bool told = false;
  for (const Rejected& rejected : result.rejected) {
    if (rejected.rule != "batch" || std::stoll(rejected.option) <= 12288) continue;
    told = true;
    EXPECT_EQ(rejected.reason, "samples to quality are not known at a global batch of " + rejected.option);
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace portolan
