#pragma once

#include <map>
#include <string>
#include <utility>

#include "plan/estimate_step.h"

namespace portolan {

// Remembers the estimates of recipes whose placement is searched: such a one costs a hundred times a dealt one, and the
// search, the ledger and the look at the other machine ask for the same ones. Clusters are told apart by their address,
// so that one memo serves one model and clusters that outlive it. Not thread-safe.
class EstimateMemo {
 public:
  // As EstimateStep(model, recipe, cluster).
  Result<StepEstimate> Price(const Model& model, const Recipe& recipe, const Cluster& cluster);

 private:
  std::map<std::pair<const Cluster*, std::string>, StepEstimate> known_;  // by WriteRecipe's text
};

}  // namespace portolan
