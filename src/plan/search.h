#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/estimate_memo.h"
#include "plan/estimate_step.h"
#include "plan/objective.h"
#include "recipe/rules/rule.h"

namespace portolan {

// Of the objective: what gains no more is not taken.
constexpr double kLeastGain = 0.001;

struct SearchOptions {
  std::set<std::string> allow;  // names of rules of class kChangesMaths that may be used
  enum class Structure { kKeep, kRevise } structure = Structure::kRevise;
  enum class Bound { kCompute, kSkip } bound = Bound::kCompute;  // SearchResult::lower_bound and gap
  EstimateMemo* memo = nullptr;                                  // not owned; null: nothing is remembered
  // Called with the share of the search that is done, in (0, 1]: an estimate, since rounds end when nothing is gained.
  std::function<void(double done)> progress;
};

// A change that the search took, with the state before and after it.
struct Step {
  Change change;
  Seconds before, after;                   // a step
  double rate_before = 0, rate_after = 0;  // samples/s: what a gain is measured by, since a change may set the batch
  Bytes memory_before, memory_after;
  std::string binding_before, binding_after;
  std::array<Seconds, kCategoryCount> busy_before{}, busy_after{};
  bool repair = false;  // taken so that the model fits, not for speed
};

// A setting that was tried at the end of the search and not taken.
struct Rejected {
  std::string rule, option, reason;
};

struct SearchResult {
  Recipe recipe;
  StepEstimate estimate;  // of `recipe`; !estimate.memory.Fits() when nothing fits
  std::vector<Step> steps;
  std::vector<Rejected> rejected;
  Seconds lower_bound;  // over all placements of the tables under the settings found, StepLowerBound
  double gap = 0;       // step / lower_bound - 1; 0 where the bound is skipped
  int estimates = 0;    // how many recipes were priced
};

// Objective of `before` over that of `after`, less one; nullopt when one is seconds to quality and the other is not.
std::optional<double> ObjectiveGain(const Model& model, const StepEstimate& before, const StepEstimate& after);

// Finds the fastest recipe that fits, from `start`. First, if `start` does not fit, the settings that make it fit at
// the least cost (repairs); tables in host memory only when nothing else fits, and gradient accumulation, which changes
// when tables are updated, only when it is allowed or those do not help. Then rule by rule, in their order: price every
// setting a rule proposes and take the best that improves the objective by more than 0.1 %, until a whole round takes
// nothing; then pairs of settings of rules that trade memory for time, since one may pay only together with another.
// Deterministic.
Result<SearchResult> SearchRecipe(const Model& model, const Recipe& start, const Cluster& cluster,
                                  const SearchOptions& options);

}  // namespace portolan
