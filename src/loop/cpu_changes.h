#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/job.h"
#include "engine/network.h"
#include "loop/calibration.h"
#include "loop/price_step.h"
#include "model/model.h"
#include "recipe/recipe.h"
#include "recipe/rules/rule.h"

namespace portolan {

// One setting that a job on this CPU may have otherwise; `rule` is the name in a job's `allow` and in plan's rules.
struct CpuChange {
  std::string rule, option, what;
  MathsClass maths = MathsClass::kExact;
  Recipe recipe;  // the whole changed recipe
};

// What a plain port of the job to PyTorch does: fp32 throughout, eager layers and optimizers, an EmbeddingBag and a
// sparse, coalesced gradient a table. Batch, optimizers and clipping stay.
Recipe PortedRecipe(const Recipe& recipe);

// Settings that differ from `recipe` and may be taken: those that change the maths only where `allow` names the rule.
std::vector<CpuChange> ProposeCpuChanges(const Model& model, const Recipe& recipe, const std::set<std::string>& allow);

struct PricedChange {
  CpuChange change;
  double before_s = 0, after_s = 0;  // the step, in the order taken
};
struct CpuPlan {
  Recipe recipe;
  std::vector<PricedChange> changes;
  // What the job does not allow and would save at least kLeastGain of the planned step, each on its own.
  std::vector<PricedChange> not_allowed;
  int priced = 0;  // recipes
};

// Prices a recipe for the job's model, clipped as the job says; `batches` as CountLookups. Errors: what the engine does
// not take.
Result<StepPrice> PriceRecipe(const Job& job, const Recipe& recipe, const std::vector<Batch>& batches,
                              const Calibration& calibration);

// From `start`, again and again the change that saves most, until none saves kLeastGain of the step.
Result<CpuPlan> PlanOnCpu(const Job& job, const Recipe& start, const std::vector<Batch>& batches,
                          const Calibration& calibration);

}  // namespace portolan
