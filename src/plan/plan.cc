#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

constexpr double kNoGain = 1.005;
constexpr double kBetterThere = 1.001;  // as the search's least gain

// The same change on the old machine: the rule's proposal with the same option there.
class OldMachine {
 public:
  OldMachine(const Model& model, const Cluster& cluster, Recipe recipe, const StepEstimate& estimate,
             EstimateMemo* memo)
      : model_(model),
        cluster_(cluster),
        recipe_(std::move(recipe)),
        samples_per_s_(estimate.samples_per_s),
        memo_(memo) {}

  std::optional<double> Gain(const Change& change, std::string* why_not) {
    std::optional<Recipe> revised = ApplyAgain(change, model_, recipe_, cluster_, why_not);
    if (!revised) return std::nullopt;
    const Result<StepEstimate> estimate = memo_->Price(model_, *revised, cluster_);
    if (!estimate) {
      *why_not = FormatError(estimate.error());
      return std::nullopt;
    }
    if (!estimate->memory.Fits()) {
      *why_not = fmt::format("does not fit: {:.0f} of {:.0f} GB", estimate->memory.total.value * 1e-9,
                             estimate->memory.capacity.value * 1e-9);
      return std::nullopt;
    }
    const double gain = estimate->samples_per_s / samples_per_s_ - 1;
    recipe_ = std::move(*revised);
    samples_per_s_ = estimate->samples_per_s;
    return gain;
  }

 private:
  const Model& model_;
  const Cluster& cluster_;
  Recipe recipe_;
  double samples_per_s_;
  EstimateMemo* memo_;
};

// What both machines gain of an entry, and what only the new one does.
void AddOldMachine(OldMachine* old, LedgerEntry* entry) {
  entry->gain_from = old->Gain(entry->step.change, &entry->not_on_from);
  const double from = std::max(0.0, entry->gain_from.value_or(0.0));
  entry->gain_anywhere = std::min(from, std::max(0.0, entry->gain_to));
  entry->gain_only_here = (1 + entry->gain_to) / (1 + entry->gain_anywhere) - 1;
}

bool PlacesTablesAlike(const Recipe& a, const Recipe& b) {
  return a.sharding == b.sharding && a.balance == b.balance && a.data_parallel_max == b.data_parallel_max &&
         a.replicas == b.replicas && a.replica_layout == b.replica_layout && a.tables.size() == b.tables.size() &&
         std::equal(a.tables.begin(), a.tables.end(), b.tables.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.sharding == y.second.sharding && x.second.shards == y.second.shards;
         });
}

// The ported recipe with a searched placement keeps that of the old machine: it is part of what is ported. A greedy
// one is dealt by the recipe's own planner wherever it runs.
Result<LedgerStart> PortedStart(const Model& model, const Plan& plan, const Cluster& from, const Cluster& to,
                                EstimateMemo* memo) {
  LedgerStart start;
  start.recipe = plan.ported_recipe;
  if (start.recipe.balance == Balance::kSearched && from.devices == to.devices &&
      from.devices_per_node == to.devices_per_node && PlacesTablesAlike(plan.baseline_recipe, start.recipe)) {
    PORTOLAN_ASSIGN_OR_RETURN(start.estimate, EstimateStepPlaced(model, start.recipe, to, plan.on_from.placement));
    start.placement = LedgerStart::Placement::kOfOldMachine;
    if (start.estimate.memory.Fits()) return start;
  }
  start.placement = LedgerStart::Placement::kAsRecipe;
  PORTOLAN_ASSIGN_OR_RETURN(start.estimate, memo->Price(model, start.recipe, to));
  return start;
}

std::string NoGainReason(const Plan& plan) {
  if (!plan.codesigned.estimate.memory.Fits()) return "no recipe fits on the new machine";
  const char* baseline =
      plan.baseline_source == "given" ? "the given recipe" : "the recipe that is best on the old machine";
  const std::string nearness =
      plan.ledger.empty() ? "is the best one found here too"
                          : fmt::format("is within {:.1f} % of the best one found here", 100 * (plan.speedup - 1));
  std::string reason = fmt::format("{}{} {}; the step is bound by {}", baseline,
                                   plan.repairs.empty() ? "" : ", with what makes it fit here,", nearness,
                                   plan.codesigned.estimate.binding);
  const double used = plan.codesigned.estimate.memory.total / plan.codesigned.estimate.memory.capacity;
  if (used < 0.5) {
    reason += fmt::format(", and only {:.0f} % of the memory is used, so that its size decides nothing", 100 * used);
  }
  return reason;
}

}  // namespace

Result<Plan> MakePlan(const Model& model, const Cluster& from, const Cluster& to, const PlanOptions& options) {
  Plan plan;
  const auto report = [&options](double low, double high, const char* what) {
    return [&options, low, high, what](double done) {
      if (options.progress) options.progress(low + (high - low) * done, what);
    };
  };
  EstimateMemo memo;
  SearchOptions search;
  search.allow = options.allow;
  search.memo = &memo;
  if (options.baseline) {
    plan.baseline_source = "given";
    plan.baseline_recipe = *options.baseline;
    PORTOLAN_ASSIGN_OR_RETURN(plan.on_from, memo.Price(model, plan.baseline_recipe, from));
    plan.estimates += 1;
  } else {
    plan.baseline_source = "searched";
    search.progress = report(0, 0.45, "the best recipe on the old machine");
    search.bound = SearchOptions::Bound::kSkip;
    PORTOLAN_ASSIGN_OR_RETURN(SearchResult searched, SearchRecipe(model, options.start, from, search));
    plan.baseline_recipe = searched.recipe;
    plan.on_from = std::move(searched.estimate);
    plan.estimates += searched.estimates;
  }

  // A local search may miss on the old machine what it finds on the new one: a recipe found here that is better there
  // is where the search for the baseline begins again.
  constexpr int kSecondLooks = 2;
  Recipe start;
  for (int look = 0;; ++look) {
    // The ported baseline's global batch is the old machine's.
    start = plan.baseline_recipe;
    if (from.devices != to.devices && start.global_batch == 0) {
      start.global_batch = start.GlobalBatch(from.devices);
      start.local_batch = 0;
    }
    search.progress = report(0.45, 0.9, "the best recipe on the new machine");
    search.bound = SearchOptions::Bound::kCompute;
    PORTOLAN_ASSIGN_OR_RETURN(plan.codesigned, SearchRecipe(model, start, to, search));
    plan.estimates += plan.codesigned.estimates;
    if (options.baseline || look == kSecondLooks) break;
    const Result<StepEstimate> there = memo.Price(model, plan.codesigned.recipe, from);
    ++plan.estimates;
    const bool better = there && there->memory.Fits() && plan.on_from.memory.Fits() &&
                        there->global_batch == plan.on_from.global_batch &&
                        there->samples_per_s > kBetterThere * plan.on_from.samples_per_s;
    if (!better) break;
    search.bound = SearchOptions::Bound::kSkip;
    PORTOLAN_ASSIGN_OR_RETURN(SearchResult again, SearchRecipe(model, plan.codesigned.recipe, from, search));
    plan.baseline_recipe = again.recipe;
    plan.on_from = std::move(again.estimate);
    plan.estimates += again.estimates;
  }
  plan.ported_recipe = start;
  for (const Step& step : plan.codesigned.steps) {
    if (!step.repair) continue;
    plan.repairs.push_back(step);
    plan.ported_recipe = step.change.recipe;
  }
  plan.ported_recipe.balance = start.balance;
  PORTOLAN_ASSIGN_OR_RETURN(const LedgerStart ledger_start, PortedStart(model, plan, from, to, &memo));
  PORTOLAN_ASSIGN_OR_RETURN(Ledger ledger,
                            BuildLedger(model, to, ledger_start, plan.codesigned, options.errors, &memo));
  plan.baseline = std::move(ledger.start);
  plan.ledger = std::move(ledger.entries);
  plan.estimates += 1 + ledger.estimates;
  if (!ledger.dropped.empty()) {
    plan.codesigned.recipe = std::move(ledger.recipe);
    plan.codesigned.estimate = std::move(ledger.estimate);
    PORTOLAN_ASSIGN_OR_RETURN(plan.codesigned.lower_bound, StepLowerBound(model, plan.codesigned.recipe, to));
    plan.codesigned.lower_bound = std::min(plan.codesigned.lower_bound, plan.codesigned.estimate.step);
    plan.codesigned.gap = plan.codesigned.estimate.step / plan.codesigned.lower_bound - 1;
  }
  plan.codesigned.rejected.insert(plan.codesigned.rejected.begin(), ledger.dropped.begin(), ledger.dropped.end());
  plan.speedup = plan.codesigned.estimate.samples_per_s / plan.baseline.samples_per_s;
  const auto before = TimeToQuality(model, static_cast<double>(plan.baseline.global_batch), plan.baseline.step);
  const auto after =
      TimeToQuality(model, static_cast<double>(plan.codesigned.estimate.global_batch), plan.codesigned.estimate.step);
  if (before && after) plan.time_to_quality_ratio = *before / *after;

  OldMachine old(model, from, plan.baseline_recipe, plan.on_from, &memo);
  for (LedgerEntry& entry : plan.ledger) AddOldMachine(&old, &entry);
  if (plan.speedup < kNoGain) plan.no_gain_reason = NoGainReason(plan);
  report(0.9, 1, "the capacity dividend")(0.1);
  if (plan.codesigned.estimate.memory.Fits() && plan.on_from.memory.Fits()) {
    const StepEstimate& there = plan.on_from;
    const StepEstimate& here = plan.codesigned.estimate;
    plan.dividends = CapacityDividends(model, {from, plan.baseline_recipe, there.placement, there.step},
                                       {to, plan.codesigned.recipe, here.placement, plan.baseline.step});
  }
  report(0.9, 1, "done")(1);
  return plan;
}

}  // namespace portolan
