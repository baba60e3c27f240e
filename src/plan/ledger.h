#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/search.h"
#include "plan/term_errors.h"

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

// Where a ledger starts: a recipe on the new machine.
struct LedgerStart {
  Recipe recipe;
  StepEstimate estimate;
  // `estimate` has the tables where the old machine had them, which the recipe's searched placement need not be.
  enum class Placement { kAsRecipe, kOfOldMachine } placement = Placement::kAsRecipe;
};

struct Ledger {
  std::vector<LedgerEntry> entries;
  // After the last entry; where there is none, the start's recipe as an estimate prices it.
  Recipe recipe;
  StepEstimate estimate;
  StepEstimate start;  // what the gains are counted from: LedgerStart's estimate, or, without a gain of placing the
                       // tables again, the same recipe with its own placement
  std::vector<Rejected> dropped;
  int estimates = 0;
};

// Prices the steps of a search (repairs left out) again, one after the other from `start`, as `estimate` prices the
// recipe that each gives: memory after an entry is memory before the next, and the gains multiply to estimate / start.
// A search deals tables greedily until its end, so that a step may gain nothing here: such a step (at most kLeastGain)
// is dropped where the result is no slower without it, and told together with the next one where it is.
// gain_from and not_on_from are left to the caller. `memo`: not null, of this model.
Result<Ledger> BuildLedger(const Model& model, const Cluster& cluster, const LedgerStart& start,
                           const SearchResult& search, const TermErrors& errors, EstimateMemo* memo);

// The rule and option of a change again on another recipe or machine; nullopt with *why_not where it does not apply.
std::optional<Recipe> ApplyAgain(const Change& change, const Model& model, const Recipe& recipe, const Cluster& cluster,
                                 std::string* why_not);

// The gain of a step if the time it saves were overpriced by the error of the terms that it changed.
double GainLowerBound(const Step& step, const TermErrors& errors);

}  // namespace portolan
