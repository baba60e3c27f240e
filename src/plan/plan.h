#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/dividend.h"
#include "plan/ledger.h"

namespace portolan {

struct PlanOptions {
  std::optional<Recipe> baseline;  // the user's recipe; otherwise the best one on the old machine is searched
  Recipe start;                    // where that search begins
  std::set<std::string> allow;
  TermErrors errors;  // of the terms on the new machine, for the gains' lower bounds (MeasureTermErrors)
  // Called with the share of the work that is done, in (0, 1], and what is being done.
  std::function<void(double done, const char* what)> progress;
};

struct Plan {
  std::string baseline_source;  // "given" or "searched"
  Recipe baseline_recipe;       // as it runs on the old machine
  StepEstimate on_from;         // the baseline there
  Recipe ported_recipe;         // the baseline with the repairs that the new machine needs
  // Ported, on the new machine, with the tables where they were on the old one; placed again where they do not fit so,
  // where the number of devices differs, or where that gains nothing.
  StepEstimate baseline;
  std::vector<Step> repairs;                    // the least change that makes it fit there; usually none
  SearchResult codesigned;                      // on the new machine, from the ported baseline; `steps` as searched
  double speedup = 1;                           // samples/s, codesigned over ported
  std::optional<double> time_to_quality_ratio;  // ported over codesigned seconds to quality, where known
  std::vector<LedgerEntry> ledger;  // from `baseline` to `codesigned`: each entry begins where the one before ends
  std::string no_gain_reason;       // set when speedup < 1.005
  std::vector<Dividend> dividends;
  int estimates = 0;
};

// Plans `model` from the recipe that is best on `from` to the one that is best on `to`. Both are searched under the
// same rules, structure included: what would have been gained on the old machine too is no gain of the new one. A
// baseline that the user gives is taken as it is.
Result<Plan> MakePlan(const Model& model, const Cluster& from, const Cluster& to, const PlanOptions& options);

}  // namespace portolan
