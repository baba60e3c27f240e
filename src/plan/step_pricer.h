#pragma once

#include "plan/estimate_step.h"
#include "plan/graph_builder.h"
#include "plan/placement_search.h"
#include "plan/shard_cost.h"

namespace portolan {

struct PricedPlacement {
  explicit PricedPlacement(Placement p) : placement(std::move(p)) {}
  bool Beats(const PricedPlacement& other) const { return fits != other.fits ? fits : step < other.step; }
  Placement placement;
  EmbeddingWork work;
  Seconds step;
  Bytes limit;  // what tables may use of a device beside what this placement needs
  bool fits = false;
};

// Prices steps of one model under one recipe on one cluster for different placements, every shard once. Not part of the
// API. Holds references: its arguments must outlive it.
class StepPricer {
 public:
  StepPricer(const Model& model, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants);

  const Model& model() const { return model_; }
  // Of one micro-batch and sharding group: what tables are placed for.
  const Recipe& recipe() const { return group_recipe_; }
  const Cluster& cluster() const { return scopes_.group(); }
  ShardPricer& shards() { return shards_; }

  // What tables may use of a device: all but the dense parameters and the reserve.
  Bytes FreeForTables() const;
  MemoryEstimate Memory(const Placement& placement, const StepGraph& graph) const {
    return EstimateMemory(model_, micro_, cluster_, placement, graph);
  }
  // As the recipe's `balance` says. `searched`: the greedy placement (on several nodes also whole tables), improved
  // under weights taken at it, again and again while that makes the step shorter; the shortest step of those that fit.
  Placement Place();
  EmbeddingWork Measure(const Placement& placement) {
    return MeasureEmbeddings(shards_, placement, RankBalance::kSlowest);
  }
  StepGraph Graph(const EmbeddingWork& work) const {
    return BuildStepGraph(model_, micro_, scopes_, work, StepPart::kWhole, &gemms_);
  }
  // The whole step: all micro-batches; `graph` is the last one's.
  Timeline Run(const EmbeddingWork& work, const StepGraph& graph) const;
  Seconds StepOf(const EmbeddingWork& work) const { return Run(work, Graph(work)).step; }

  // Fills in all but the placement.
  void Price(PricedPlacement& candidate);

 private:
  // Greedy, all tables alike but those that `like` replicates.
  Placement PlaceAllBy(Sharding sharding, const Placement& like) const;
  // Improves `best` from the splits at the lower bound, all dealt afresh. Returns the bound: 0 with two streams.
  Seconds ImproveFromBound(PricedPlacement& best);
  // Rounds of local search under weights taken at the best placement so far.
  void Improve(PricedPlacement& best, SearchSplits splits);
  PlacementWeights WeightsAt(const EmbeddingWork& work, Seconds step, double difference) const;

  const Model& model_;
  const Cluster& cluster_;
  const StepConstants& constants_;
  const int64_t steps_;
  Recipe micro_, group_recipe_;
  CollectiveScopes scopes_;
  ShardPricer shards_;
  mutable GemmMemo gemms_;
};

}  // namespace portolan
