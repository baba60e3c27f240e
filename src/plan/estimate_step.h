#pragma once

#include <string>
#include <vector>

#include "plan/memory.h"
#include "plan/placement.h"
#include "plan/step_graph.h"
#include "plan/timeline.h"

namespace portolan {

// What one recipe costs for one model on one cluster.
struct StepEstimate {
  int64_t global_batch = 0;
  double local_batch = 0;
  Seconds step;
  double samples_per_s = 0;
  std::vector<ExposedTerm> breakdown;  // adds up to `step`, largest first
  std::array<Seconds, kCategoryCount> busy{};
  MemoryEstimate memory;
  Placement placement;
  StepGraph graph;
  // The largest term and the hardware figure that limits it, in words.
  std::string binding;
  // Assumptions and limits of this answer that a reader must know (extrapolations, missing facts).
  std::vector<std::string> notes;
};

// Errors: a global batch smaller than the number of devices, a recipe that names tables or blocks the model lacks.
// "Does not fit" is an answer: memory.Fits() says so.
Result<StepEstimate> EstimateStep(const Model& model, const Recipe& recipe, const Cluster& cluster,
                                  const StepConstants& constants = SharedStepConstants());

// The same with the tables where `placement` has them, whatever the recipe says of it. Error: a placement of other
// tables or ranks than the model's and the cluster's.
Result<StepEstimate> EstimateStepPlaced(const Model& model, const Recipe& recipe, const Cluster& cluster,
                                        const Placement& placement,
                                        const StepConstants& constants = SharedStepConstants());

// A lower bound on the step over all ways to split the recipe's tables (SplitOptions, placement_search.h) and to deal
// their shards to ranks; where the greedy placement fits, over those that fit. The other settings, and which tables are
// replicated, as the recipe has them. The argument is in placement_bound.cc and placement_dual_bound.cc.
Result<Seconds> StepLowerBound(const Model& model, const Recipe& recipe, const Cluster& cluster,
                               const StepConstants& constants = SharedStepConstants());

}  // namespace portolan
