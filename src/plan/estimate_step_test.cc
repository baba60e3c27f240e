#include "plan/estimate_step.h"

#include <cmath>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

double Rate(const std::string& model, const Recipe& recipe, const std::string& on) {
  return EstimateOrFail(DataModel(model), recipe, TestCluster(on)).samples_per_s;
}

Recipe WithGlobalBatch(const std::string& id, int64_t batch) {
  Recipe recipe = DataRecipe(id);
  recipe.global_batch = batch;
  recipe.local_batch = 0;
  return recipe;
}

// A published change of samples/s by `published` (0.17 = 17 % more) is predicted with the right sign and between half
// and one and a half times its size.
void ExpectGain(double before, double after, double published) {
  const double gain = after / before - 1;
  EXPECT_GE(gain / published, 0.5) << "predicted " << gain;
  EXPECT_LE(gain / published, 1.5) << "predicted " << gain;
}

struct Job {
  const char* model;
  const char* recipe;
  const char* on;
};
constexpr Job kJobs[] = {
    {"mlperf_dlrm_dcnv2", "hugectr_mlperf", "8xh100"}, {"mlperf_dlrm_dcnv2", "hugectr_mlperf_nodes", "64xh100"},
    {"mlperf_dlrm_dot", "hugectr_dlrm_v21", "8xa100"}, {"mlperf_dlrmv4_hstu", "dlrmv4_mlperf", "8xmi350x"},
    {"onetrans_large", "onetrans_primus", "8xb200"},   {"rm2", "hugectr_mlperf", "h100"}};

TEST(EstimateStepTest, TheBreakdownAddsUpAndIsSorted) {
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.model);
    const StepEstimate estimate = EstimateOrFail(DataModel(job.model), DataRecipe(job.recipe), TestCluster(job.on));
    EXPECT_GT(estimate.step, Seconds(0));
    EXPECT_NEAR(SumOfBreakdown(estimate), estimate.step.value, 1e-9 * estimate.step.value);
    EXPECT_DOUBLE_EQ(estimate.samples_per_s, static_cast<double>(estimate.global_batch) / estimate.step.value);
    for (size_t i = 1; i < estimate.breakdown.size(); ++i) {
      EXPECT_GE(estimate.breakdown[i - 1].time, estimate.breakdown[i].time);
    }
    EXPECT_EQ(estimate.binding.rfind(estimate.breakdown[0].name, 0), 0u) << estimate.binding;
  }
}

TEST(EstimateStepTest, ABiggerBatchTrainsMoreSamplesASecond) {
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.model);
    double last = 0;
    for (const int64_t batch : {8192, 16384, 32768, 65536}) {
      const double rate = Rate(job.model, WithGlobalBatch(job.recipe, batch), job.on);
      EXPECT_GT(rate, last * 0.999) << batch;  // tiles do not always divide the batch
      last = rate;
    }
  }
}

TEST(EstimateStepTest, MoreDevicesAtOneLocalBatchAreNotSlower) {
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.model);
    double last = 0;
    for (const int devices : {1, 2, 4, 8, 16, 64}) {
      Recipe recipe = DataRecipe(job.recipe);
      recipe.global_batch = 0;
      recipe.local_batch = 1024;
      const double rate = Rate(job.model, recipe, std::to_string(devices) + "xh100");
      EXPECT_GE(rate, last) << devices;
      last = rate;
    }
  }
}

// MLPerf DLRMv4 on 8 x MI350X, index dedup off and on: 941.6 and 805.7 ms, 1.17 times as fast (yambda_5b.gin).
TEST(EstimateStepTest, DedupOfDlrmv4) {
  Recipe recipe = DataRecipe("dlrmv4_mlperf");
  const double on = Rate("mlperf_dlrmv4_hstu", recipe, "8xmi350x");
  recipe.dedup = IndexDedup::kNone;
  const double off = Rate("mlperf_dlrmv4_hstu", recipe, "8xmi350x");
  ExpectGain(off, on, 941.6 / 805.7 - 1);
}

// The same on two nodes: 1108.0 and 818.0 ms.
TEST(EstimateStepTest, DedupOfDlrmv4OnTwoNodes) {
  Recipe recipe = DataRecipe("dlrmv4_mlperf");
  const double on = Rate("mlperf_dlrmv4_hstu", recipe, "16xmi350x");
  recipe.dedup = IndexDedup::kNone;
  const double off = Rate("mlperf_dlrmv4_hstu", recipe, "16xmi350x");
  ExpectGain(off, on, 1108.0 / 818.0 - 1);
}

// fp16 against fp32 exchange without dedup: about 6 % of the step (the same file). With dedup next to nothing travels.
TEST(EstimateStepTest, HalfPrecisionExchangeOfDlrmv4) {
  Recipe recipe = DataRecipe("dlrmv4_mlperf");
  recipe.dedup = IndexDedup::kNone;
  const double half = Rate("mlperf_dlrmv4_hstu", recipe, "8xmi350x");
  recipe.embedding_forward_comm = recipe.embedding_backward_comm = DType::kFp32;
  const double full = Rate("mlperf_dlrmv4_hstu", recipe, "8xmi350x");
  ExpectGain(full, half, 0.06);
}

// DCNv2 on 4 x H100: 28,000 samples in 3.701 ms (MLPerf v3.1, Dell) and 49,152 in 5.843 ms (v4.1, Fujitsu); on one
// system 32,768 in 4.364 ms (v4.0, Fujitsu) and the latter.
TEST(EstimateStepTest, BatchOfDcnv2) {
  const double rate_28k = Rate("mlperf_dlrm_dcnv2", WithGlobalBatch("hugectr_mlperf", 28000), "4xh100");
  const double rate_32k = Rate("mlperf_dlrm_dcnv2", WithGlobalBatch("hugectr_mlperf", 32768), "4xh100");
  const double rate_49k = Rate("mlperf_dlrm_dcnv2", WithGlobalBatch("hugectr_mlperf", 49152), "4xh100");
  ExpectGain(rate_28k, rate_49k, (49152 / 5.843) / (28000 / 3.701) - 1);
  ExpectGain(rate_32k, rate_49k, (49152 / 5.843) / (32768 / 4.364) - 1);
}

// dlrm_counter_v1 on 8 x MI355X: 198,233 samples/s with whole tables, 192,220 by row, 165,564 replicated, 137,188 with
// everything under DDP (AMD-AGI/Primus-DLRM, doc/log.md). The order is predicted.
TEST(EstimateStepTest, ShardingOfSmallTables) {
  const double table = Rate("dlrm_counter_v1", DataRecipe("dlrm_counter_table"), "8xmi355x");
  const double row = Rate("dlrm_counter_v1", DataRecipe("dlrm_counter_row"), "8xmi355x");
  const double replicated = Rate("dlrm_counter_v1", DataRecipe("dlrm_counter_data_parallel"), "8xmi355x");
  const double ddp = Rate("dlrm_counter_v1", DataRecipe("dlrm_counter_ddp"), "8xmi355x");
  EXPECT_GE(table, row);
  EXPECT_GT(row, replicated);
  EXPECT_GT(replicated, ddp);
}

// Known fault: the published steps take 20.7 ms with whole tables, of which the GPU works less than one; the rest is a
// Python data loader and training loop, of which the step model has the 6 ms that TorchRec needs at the least. Right:
// 20.7 ms; replicating costs 4.0 ms more, DDP 9.2 ms.
TEST(EstimateStepTest, KnownFaultNoDataLoader) {
  const auto step = [](const char* recipe) {
    return EstimateOrFail(DataModel("dlrm_counter_v1"), DataRecipe(recipe), TestCluster("8xmi355x")).step.value;
  };
  const double table = step("dlrm_counter_table");
  EXPECT_LT(table, 8e-3) << "right: 20.7e-3; when data loading is modelled, move these into the test above";
  const double replicated = step("dlrm_counter_data_parallel") - table;
  EXPECT_GT(replicated, 0.5 * 4.0e-3);
  EXPECT_LT(replicated, 1.5 * 4.0e-3);
  const double ddp = step("dlrm_counter_ddp") - table;
  EXPECT_GT(ddp, 0.5 * 9.2e-3);
  EXPECT_LT(ddp, 1.5 * 9.2e-3);
}

TEST(EstimateStepTest, WhatCannotBePricedIsAnError) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  const Cluster cluster = TestCluster("8xh100");
  const auto error_of = [&](const Recipe& recipe) {
    const Result<StepEstimate> estimate = EstimateStep(model, recipe, cluster);
    return estimate ? "accepted" : FormatError(estimate.error());
  };
  Recipe recipe = WithGlobalBatch("hugectr_mlperf", 4);
  EXPECT_EQ(error_of(recipe), "global_batch must be at least the number of devices (8), got 4");
  recipe = DataRecipe("hugectr_mlperf");
  recipe.tables["cat_99"] = {Sharding::kRow, 1};
  EXPECT_EQ(error_of(recipe).find(
                "recipe 'hugectr_mlperf': embedding.tables: model 'mlperf_dlrm_dcnv2' has no table 'cat_99'; did you"),
            0u)
      << error_of(recipe);
  recipe = DataRecipe("hugectr_mlperf");
  recipe.tables["cat_0"] = {Sharding::kColumn, 16};
  EXPECT_EQ(error_of(recipe),
            "recipe 'hugectr_mlperf': embedding.tables.cat_0.shards must be at most the number of devices (8), got 16");
  recipe = DataRecipe("hugectr_mlperf");
  recipe.recompute = Recompute::kListed;
  recipe.recompute_blocks = {"botom"};
  EXPECT_NE(error_of(recipe).find("has no block 'botom'; did you mean 'bottom'?"), std::string::npos)
      << error_of(recipe);
}

bool Notes(const StepEstimate& estimate, const std::string& text) {
  for (const std::string& note : estimate.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

// A setting that has nothing to act on is told, and only then.
TEST(EstimateStepTest, IdleSettingsAreNoted) {
  Recipe recipe = DefaultRecipe();
  const Model pooled = DataModel("rm2"), sequence = DataModel("onetrans_large");
  for (const Model* model : {&pooled, &sequence}) {
    EXPECT_FALSE(Notes(EstimateOrFail(*model, recipe, TestCluster("8xmi350x")), "changes nothing"));
  }
  recipe.dedup = IndexDedup::kBeforeExchange;
  EXPECT_TRUE(Notes(EstimateOrFail(pooled, recipe, TestCluster("8xmi350x")), "embedding.dedup changes nothing"));
  EXPECT_FALSE(Notes(EstimateOrFail(sequence, recipe, TestCluster("8xmi350x")), "embedding.dedup"));
  recipe = DefaultRecipe();
  recipe.sharding = Sharding::kRow;
  recipe.dense_parallelism = DenseParallelism::kFullySharded;
  recipe.hot_rows = 100;
  StepEstimate estimate = EstimateOrFail(pooled, recipe, TestCluster("mi350x"));
  EXPECT_TRUE(Notes(estimate, "embedding.sharding row changes nothing"));
  EXPECT_TRUE(Notes(estimate, "execution.dense_parallelism changes nothing"));
  EXPECT_TRUE(Notes(estimate, "embedding.replicated_hot_rows changes nothing"));
  estimate = EstimateOrFail(pooled, recipe, TestCluster("8xmi350x"));
  EXPECT_FALSE(Notes(estimate, "embedding.sharding"));
  EXPECT_FALSE(Notes(estimate, "dense_parallelism"));
  recipe = DefaultRecipe();
  recipe.node_exchange = NodeExchange::kDirectStores;
  EXPECT_TRUE(Notes(EstimateOrFail(pooled, recipe, TestCluster("8xmi350x")), "direct_stores changes nothing"));
  recipe.sharding = Sharding::kTableRow;
  EXPECT_FALSE(Notes(EstimateOrFail(pooled, recipe, TestCluster("16xmi350x")), "direct_stores"));
  recipe = DefaultRecipe();
  recipe.host_tables_min = Bytes(1e15);
  EXPECT_TRUE(Notes(EstimateOrFail(pooled, recipe, TestCluster("8xmi350x")), "host_tables_min_bytes changes nothing"));
}

// Tables where a placement has them: the estimate's own placement gives its own price, whatever the recipe asks for.
TEST(EstimateStepTest, PlacedTablesStayWhereTheyAre) {
  const Model model = DataModel("production_66");
  const Cluster cluster = TestCluster("8xmi350x");
  Recipe recipe = DefaultRecipe();
  recipe.balance = Balance::kSearched;
  const StepEstimate searched = EstimateOrFail(model, recipe, cluster);
  recipe.balance = Balance::kGreedy;
  const StepEstimate placed = ValueOrFail(EstimateStepPlaced(model, recipe, cluster, searched.placement));
  EXPECT_EQ(placed.step, searched.step);
  EXPECT_EQ(placed.memory.total, searched.memory.total);
  const Result<StepEstimate> other = EstimateStepPlaced(model, recipe, TestCluster("16xmi350x"), searched.placement);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("66 tables on 8 ranks, for 66 tables on 16"), std::string::npos)
      << other.error().message;
}

TEST(EstimateStepTest, TheSameQuestionHasTheSameAnswer) {
  for (const Job& job : kJobs) {
    EXPECT_EQ(Rate(job.model, DataRecipe(job.recipe), job.on), Rate(job.model, DataRecipe(job.recipe), job.on));
  }
}

}  // namespace
}  // namespace portolan
