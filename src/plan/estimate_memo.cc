#include "plan/estimate_memo.h"

namespace portolan {

Result<StepEstimate> EstimateMemo::Price(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  if (recipe.balance != Balance::kSearched) return EstimateStep(model, recipe, cluster);
  const std::pair<const Cluster*, std::string> key(&cluster, WriteRecipe(recipe));
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  PORTOLAN_ASSIGN_OR_RETURN(StepEstimate estimate, EstimateStep(model, recipe, cluster));
  return known_.emplace(key, std::move(estimate)).first->second;
}

}  // namespace portolan
