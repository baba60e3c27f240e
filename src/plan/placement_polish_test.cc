#include "plan/placement_polish.h"

#include <algorithm>
#include <functional>
#include <random>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

Model SomeTables(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::string text = "model: some\ndense_features: 16\ntables:\n";
  for (int t = 0; t < count; ++t) {
    text += "  - {name: t" + std::to_string(t) + ", rows: " + std::to_string(100000 + random() % 5000000) +
            ", dim: " + std::to_string(32 << (random() % 3)) + ", lookups: " + std::to_string(1 + random() % 60) +
            ", zipf_exponent: " + (random() % 2 ? "1.1" : "0") + "}\n";
  }
  return ModelFromText(text +
                       "blocks:\n"
                       "  - {name: features, type: concat, inputs: [dense, embeddings]}\n"
                       "  - {name: top, type: mlp, input: features, widths: [64, 1]}\n");
}

Recipe PolishRecipe() {
  Recipe recipe = DefaultRecipe();
  recipe.local_batch = 16384;
  recipe.launch = Launch::kGraph;
  return recipe;
}

void CheckComplete(const Placement& placement, const Cluster& cluster) {
  for (const TablePlacement& place : placement.tables) {
    if (place.ranks.empty()) continue;
    std::vector<int> ranks = place.ranks;
    std::sort(ranks.begin(), ranks.end());
    EXPECT_EQ(std::unique(ranks.begin(), ranks.end()), ranks.end()) << "a rank has one shard of a table";
    EXPECT_EQ(static_cast<int>(ranks.size()), place.row_shards * place.column_shards);
    EXPECT_GE(ranks.front(), 0);
    EXPECT_LT(ranks.back(), cluster.devices);
    if (place.sharding != Sharding::kTableRow) continue;
    for (size_t i = 0; i < place.ranks.size(); ++i) {
      EXPECT_EQ(place.ranks[i] % cluster.devices_per_node, static_cast<int>(i) % cluster.devices_per_node);
    }
  }
}

// From the greedy placement: each way alone never ends slower, is priced as it says and keeps all shards.
TEST(PlacementPolishTest, NeverWorseAndPricedAsItSays) {
  for (const char* on : {"4xmi350x", "8xb200", "2x2xmi350x"}) {
    for (unsigned seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(std::string(on) + " seed " + std::to_string(seed));
      const Model model = SomeTables(seed, 4);
      const Recipe recipe = PolishRecipe();
      const Cluster cluster = TestCluster(on);
      const StepConstants constants = SharedStepConstants();
      StepPricer pricer(model, recipe, cluster, constants);
      const auto polished = [&](const std::function<void(PricedPlacement*)>& polish) {
        PricedPlacement best(PlaceTables(model, recipe, cluster, pricer.FreeForTables()));
        pricer.Price(best);
        const Seconds before = best.step;
        polish(&best);
        EXPECT_LE(best.step, before);
        EXPECT_TRUE(best.fits);
        CheckComplete(best.placement, cluster);
        EXPECT_EQ(best.step, pricer.StepOf(pricer.Measure(best.placement)));
      };
      polished([&](auto* best) { PolishPlacement(pricer, PolishSplits::kNo, best); });
      polished([&](auto* best) { PolishPlacement(pricer, PolishSplits::kPairs, best); });
      polished([&](auto* best) { TryAllPlacements(pricer, best); });
    }
  }
}

// A placement that does not fit is made to: one table of 60 GB with its state on the first of two devices of 80 GB,
// another of 60 GB beside it.
TEST(PlacementPolishTest, MakesItFit) {
  const Model model = ModelFromText(
      "model: two\ndense_features: 8\ntables:\n  - {name: a, rows: 2.4e8, dim: 64, lookups: 4}\n"
      "  - {name: b, rows: 2.4e8, dim: 64, lookups: 4}\nblocks:\n"
      "  - {name: top, type: mlp, input: embeddings, widths: [64, 1]}\ntraining: {embedding_optimizer: sgd}\n");
  const Recipe recipe = PolishRecipe();
  const Cluster cluster = TestCluster("2xh100");
  const StepConstants constants = SharedStepConstants();
  StepPricer pricer(model, recipe, cluster, constants);
  Placement both = PlaceTables(model, recipe, cluster, pricer.FreeForTables());
  for (TablePlacement& place : both.tables) place = {Sharding::kTable, 1, 1, {0}};
  SumRankLoads(model, recipe, &both);
  for (const bool all : {false, true}) {
    PricedPlacement best(both);
    pricer.Price(best);
    EXPECT_FALSE(best.fits);
    if (all) {
      TryAllPlacements(pricer, &best);
    } else {
      PolishPlacement(pricer, PolishSplits::kNo, &best);
    }
    EXPECT_TRUE(best.fits) << all;
  }
}

}  // namespace
}  // namespace portolan
