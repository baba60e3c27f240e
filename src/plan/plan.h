#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/dividend.h"
#include "plan/search.h"

namespace portolan {

// One accepted change, priced on both machines.
struct LedgerEntry {
  Step step;                        // on the new machine
  double gain_to = 0;               // samples/s after / before - 1 there
  std::optional<double> gain_from;  // the same change on the old machine; none where it does not apply or fit
  std::string not_on_from;          // why not
  double gain_anywhere = 0;         // what both machines gain
  double gain_only_here = 0;        // what only the new machine gains on top
  double gain_lower_bound = 0;      // with the saved terms overpriced by their validation error
  std::string published;            // the published gain that the rule resembles
};

struct PlanOptions {
  std::optional<Recipe> baseline;  // the user's recipe; otherwise the best one on the old machine is searched
  Recipe start;                    // where that search begins
  std::set<std::string> allow;
  // Called with the share of the work that is done, in (0, 1], and what is being done.
  std::function<void(double done, const char* what)> progress;
};

struct Plan {
  std::string baseline_source;                  // "given" or "searched"
  Recipe baseline_recipe;                       // as it runs on the old machine
  StepEstimate on_from;                         // the baseline there
  Recipe ported_recipe;                         // the baseline with the repairs that the new machine needs
  StepEstimate baseline;                        // ported, on the new machine
  std::vector<Step> repairs;                    // the least change that makes it fit there; usually none
  SearchResult codesigned;                      // on the new machine, from the ported baseline
  double speedup = 1;                           // samples/s, codesigned over ported
  std::optional<double> time_to_quality_ratio;  // ported over codesigned seconds to quality, where known
  std::vector<LedgerEntry> ledger;
  std::string no_gain_reason;  // set when speedup < 1.005
  std::vector<Dividend> dividends;
  int estimates = 0;
};

// Plans `model` from the recipe that is best on `from` to the one that is best on `to`. Both are searched under the
// same rules, structure included: what would have been gained on the old machine too is no gain of the new one. A
// baseline that the user gives is taken as it is.
Result<Plan> MakePlan(const Model& model, const Cluster& from, const Cluster& to, const PlanOptions& options);

}  // namespace portolan
