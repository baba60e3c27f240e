#include "plan/host_tables.h"

#include <cmath>

#include "cost/collective.h"
#include "plan/search.h"
#include "plan/test_inputs.h"

namespace portolan {
namespace {

// One table of 1e9 x 64 fp32 (256 GB) with SGD, and next to nothing else.
Model BigTable(const std::string& feature = "zipf_exponent: 1.05") {
  return ModelFromText(
      "model: big\ndense_features: 8\ntables:\n  - {name: t, rows: 1e9, dim: 64}\nfeatures:\n"
      "  - {name: f, table: t, lookups: 10, " +
      feature +
      "}\nblocks:\n  - {name: a, type: mlp, input: embeddings, widths: [64]}\ntraining: {embedding_optimizer: sgd}\n");
}
Recipe HostRecipe(double cached) {
  Recipe recipe = DefaultRecipe();
  recipe.sharding = Sharding::kRow;
  recipe.launch = Launch::kGraph;
  recipe.tables["t"] = {Sharding::kRow, 1, TableMemory::kHost};
  recipe.host_cache_fraction = cached;
  return recipe;
}
Seconds CopyTime(double bytes, const Cluster& cluster) {
  return HostCopyEstimate({Bytes(bytes)}, cluster.accelerator).total;
}
const Task* Find(const StepGraph& graph, const std::string& name) {
  for (const Task& task : graph.tasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

TEST(HostTablesTest, MissedShareAgainstTheExactSum) {
  for (const double exponent : {0.6, 1.0, 1.05, 1.4}) {
    for (const double lookups : {100.0, 1e4, 1e6}) {
      const int rows = 20000;
      double normaliser = 0;
      for (int i = 1; i <= rows; ++i) normaliser += std::pow(i, -exponent);
      for (const int held : {100, 2000, 10000, 19000}) {
        double all = 0, missed = 0;
        for (int i = 1; i <= rows; ++i) {
          const double touched = -std::expm1(lookups * std::log1p(-std::pow(i, -exponent) / normaliser));
          all += touched;
          if (i > held) missed += touched;
        }
        EXPECT_NEAR(MissedShare(lookups, rows, exponent, held), missed / all, 0.02)
            << exponent << " " << lookups << " " << held;
      }
    }
  }
}

TEST(HostTablesTest, LawsOfTheMissedShare) {
  for (const double exponent : {0.0, 0.5, 1.0, 1.3}) {
    EXPECT_EQ(MissedShare(1e6, 1e9, exponent, 0), 1);
    EXPECT_EQ(MissedShare(1e6, 1e9, exponent, 1e9), 0);
    EXPECT_EQ(MissedShare(0, 1e9, exponent, 10), 0) << "nothing is asked for";
    double last = 1;
    for (double held = 1; held <= 1e9; held *= 1.7) {
      const double share = MissedShare(1e6, 1e9, exponent, held);
      EXPECT_LE(share, last + 1e-9) << exponent << " " << held;
      last = share;
    }
  }
  EXPECT_DOUBLE_EQ(MissedShare(1e6, 1e9, 0, 2.5e8), 0.75) << "uniform";
  EXPECT_LT(MissedShare(1e6, 1e9, 1.2, 1e8), MissedShare(1e6, 1e9, 0.8, 1e8)) << "skew helps";
}

// A row that the cache of most recently used rows lacks was in none of the last t draws, t draws filling it: against
// the sum over single rows, with t found by that sum.
TEST(HostTablesTest, RecencyAgainstTheExactSum) {
  for (const double exponent : {0.7, 1.05}) {
    const int rows = 20000;
    std::vector<double> p;
    double normaliser = 0;
    for (int i = 1; i <= rows; ++i) p.push_back(std::pow(i, -exponent));
    for (const double weight : p) normaliser += weight;
    for (double& weight : p) weight /= normaliser;
    const auto distinct = [&p](double draws) {
      double sum = 0;
      for (const double one : p) sum -= std::expm1(draws * std::log1p(-one));
      return sum;
    };
    for (const double lookups : {100.0, 1e4}) {
      for (const double held : {2000.0, 10000.0}) {
        double t = 1, most = 1e9;
        while (most / t > 1.001) {
          const double middle = std::sqrt(t * most);
          (distinct(middle) < held ? t : most) = middle;
        }
        double missed = 0;
        for (const double one : p) {
          const double log_untouched = std::log1p(-one);
          missed += -std::expm1(lookups * log_untouched) * std::exp(t * log_untouched);
        }
        EXPECT_NEAR(MissedShare(lookups, rows, exponent, held, HostCachePolicy::kLru), missed / distinct(lookups), 0.02)
            << exponent << " " << lookups << " " << held;
      }
    }
  }
}

TEST(HostTablesTest, RecencyNeverBeatsFrequency) {
  for (const double exponent : {0.5, 1.0, 1.3}) {
    double last = 1;
    for (double held = 1e5; held <= 1e9; held *= 3) {
      const double recent = MissedShare(1e5, 1e9, exponent, held, HostCachePolicy::kLru);
      EXPECT_GE(recent, MissedShare(1e5, 1e9, exponent, held)) << exponent << " " << held;
      EXPECT_LE(recent, last + 1e-6) << "more held, fewer missed";
      last = recent;
    }
  }
  EXPECT_NEAR(MissedShare(1e5, 1e9, 0, 2.5e8, HostCachePolicy::kLru), 0.75, 1e-9) << "uniform: the same";
}

// A table without skew on eight devices, a tenth cached: of 81,920 lookups all but a few rows are distinct and 90 % of
// them miss. A device owns an eighth: 81,920 x 0.9 / 8 x 256 B = 2.36 MB each way.
TEST(HostTablesTest, HandSumOfTheLink) {
  const Cluster cluster = TestCluster("8xh100");
  const Model model = BigTable("zipf_exponent: 0");
  const StepEstimate estimate = EstimateOrFail(model, HostRecipe(0.1), cluster);
  const Task* fetch = Find(estimate.graph, "host_rows_fetch");
  ASSERT_NE(fetch, nullptr);
  const double unique = model.UniqueRows(model.features[0], 8192);
  EXPECT_NEAR(unique, 81920, 10);
  EXPECT_NEAR(fetch->estimate.total.value, CopyTime(unique * 0.9 / 8 * 256, cluster).value, 1e-12);
  // In HBM a tenth of 32 GB a device; in the node's memory all 256 GB of its 2 TB.
  EXPECT_NEAR(estimate.memory.tables.value, 3.2e9, 1e6);
  EXPECT_NEAR(estimate.memory.host_tables.value, 256e9, 1e6);
  EXPECT_EQ(estimate.memory.host_capacity, Bytes(2e12));
  EXPECT_TRUE(estimate.memory.Fits());
}

// No skew and next to no cache: every distinct row crosses the link. Everything cached: the price of HBM, to the bit.
TEST(HostTablesTest, EndsOfTheRange) {
  const Cluster cluster = TestCluster("8xh100");
  const Model model = BigTable("zipf_exponent: 0");
  const StepEstimate none = EstimateOrFail(model, HostRecipe(1e-4), cluster);
  const double whole = model.UniqueRows(model.features[0], 8192) / 8 * 256;
  EXPECT_NEAR(Find(none.graph, "host_rows_fetch")->estimate.communication.value,
              (HostCopyEstimate({Bytes(whole)}, cluster.accelerator).communication).value, 2e-4 * 1e-3);
  Recipe device = HostRecipe(1);
  const StepEstimate all = EstimateOrFail(model, device, cluster);
  device.tables["t"].memory = TableMemory::kDevice;
  const StepEstimate hbm = EstimateOrFail(model, device, cluster);
  EXPECT_EQ(all.step, hbm.step);
  EXPECT_EQ(all.memory.total, hbm.memory.total);
  EXPECT_EQ(all.memory.host_tables, Bytes(0));
  EXPECT_EQ(Find(all.graph, "host_rows_fetch"), nullptr);
}

// A bigger cache is never slower and never smaller in HBM; wider state makes more traffic.
TEST(HostTablesTest, ABiggerCacheIsNeverSlower) {
  for (const char* cluster : {"8xh100", "8xmi350x", "h200", "16xb200"}) {
    for (const char* pipeline : {"none", "index_exchange"}) {
      SCOPED_TRACE(std::string(cluster) + " " + pipeline);
      Seconds last(1e9);
      Bytes memory(0);
      for (const double cached : {0.001, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0}) {
        Recipe recipe = HostRecipe(cached);
        recipe.pipeline = std::string(pipeline) == "none" ? Pipeline::kNone : Pipeline::kIndexExchange;
        const StepEstimate estimate = EstimateOrFail(BigTable(), recipe, TestCluster(cluster));
        EXPECT_LE(estimate.step.value, last.value * (1 + 1e-9)) << cached;
        // The buffer of missed rows shrinks by less than the cache grows.
        EXPECT_GE(estimate.memory.total, memory) << cached;
        last = estimate.step;
        memory = estimate.memory.total;
      }
    }
  }
}

// With the next batch's indices at hand its rows come beside the step; without, the step waits for them.
TEST(HostTablesTest, PrefetchNeedsTheNextIndices) {
  Recipe recipe = HostRecipe(0.01);
  const Cluster cluster = TestCluster("8xh100");
  const StepEstimate waits = EstimateOrFail(BigTable(), recipe, cluster);
  recipe.pipeline = Pipeline::kIndexExchange;
  const StepEstimate prefetches = EstimateOrFail(BigTable(), recipe, cluster);
  EXPECT_GT(ExposedSeconds(waits, "host_copy"), 0);
  EXPECT_LT(ExposedSeconds(prefetches, "host_copy"), ExposedSeconds(waits, "host_copy"));
  EXPECT_LT(prefetches.step, waits.step);
  EXPECT_EQ(prefetches.busy[static_cast<size_t>(Category::kHostCopy)],
            waits.busy[static_cast<size_t>(Category::kHostCopy)]);
}

// NVIDIA/recsys-examples, corelib/dynamicemb/benchmark (one H100): 350,000 distinct rows of 128 fp32 behind a cache
// take 3.99 ms against 0.35 ms in HBM. What the link alone needs for those rows, none of them held:
TEST(HostTablesTest, PublishedColdLookupIsTheLinks) {
  const Seconds link = CopyTime(350e3 * 128 * 4, TestCluster("h100"));
  EXPECT_NEAR(link.value, 3.99e-3 - 0.347e-3, 0.15 * 3.99e-3);
}

TEST(HostTablesTest, BySize) {
  Recipe recipe = DefaultRecipe();
  const Model model = BigTable();
  EXPECT_FALSE(InHostMemory(model, recipe, 0));
  recipe.host_tables_min = Bytes(256e9);
  EXPECT_TRUE(InHostMemory(model, recipe, 0)) << "at least";
  EXPECT_EQ(DeviceRows(model, recipe, 0), 2e8);
  recipe.host_tables_min = Bytes(257e9);
  EXPECT_FALSE(InHostMemory(model, recipe, 0));
  recipe.host_tables_min = Bytes(1);
  recipe.tables["t"].memory = TableMemory::kDevice;
  EXPECT_FALSE(InHostMemory(model, recipe, 0)) << "named";
  recipe.tables.clear();
  recipe.data_parallel_max = Bytes(1e12);
  EXPECT_FALSE(InHostMemory(model, recipe, 0)) << "replicated";
}

TEST(HostTablesTest, Refusals) {
  Recipe recipe = HostRecipe(0.1);
  Result<StepEstimate> estimate = EstimateStep(BigTable(), recipe, TestCluster("8xa30"));
  ASSERT_FALSE(estimate);
  EXPECT_NE(estimate.error().message.find("a30 states no host_memory_bytes_per_device"), std::string::npos)
      << estimate.error().message;
  recipe.tables["t"].sharding = Sharding::kDataParallel;
  estimate = EstimateStep(BigTable(), recipe, TestCluster("8xh100"));
  ASSERT_FALSE(estimate);
  EXPECT_NE(estimate.error().message.find("embedding.tables.t.memory"), std::string::npos) << estimate.error().message;
}

// 3 TB of rows on one server of 2 TB: the devices' memory is enough for the cache, the host's is not for the tables.
TEST(HostTablesTest, TheHostsMemoryIsChecked) {
  Model model = BigTable();
  model.tables[0].rows = 12e9;
  const StepEstimate estimate = EstimateOrFail(model, HostRecipe(0.05), TestCluster("8xh100"));
  EXPECT_TRUE(estimate.memory.FitsDevice());
  EXPECT_FALSE(estimate.memory.Fits());
  EXPECT_EQ(estimate.memory.WhatWouldFit(TestCluster("8xh100")),
            "tables in host memory need 3072.0 GB of a node's 2000.0 GB; more nodes or narrower rows");
  EXPECT_TRUE(EstimateOrFail(model, HostRecipe(0.05), TestCluster("16xh100")).memory.Fits());
}

// 1.6 TB of rows do not fit on eight H100 by any other rule that keeps the maths: the plan moves them and says so.
TEST(HostTablesTest, ThePlansRepair) {
  Model model = BigTable();
  model.tables[0].rows = 6.25e9;
  const SearchResult result = ValueOrFail(SearchRecipe(model, DefaultRecipe(), TestCluster("8xh100"), {}));
  ASSERT_TRUE(result.estimate.memory.Fits());
  ASSERT_FALSE(result.steps.empty());
  EXPECT_EQ(result.steps[0].change.rule, "host_tables");
  EXPECT_TRUE(result.steps[0].repair);
  EXPECT_NEAR(result.estimate.memory.host_tables.value, 1.6e12, 1e9);
}

}  // namespace
}  // namespace portolan
