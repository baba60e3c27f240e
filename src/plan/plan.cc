#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

constexpr double kNoGain = 1.005;
constexpr double kBetterThere = 1.001;  // as the search's least gain

// Mean relative error of each category's cost model against measurements (docs/cost-*.md, docs/validation.md).
double ValidationError(Category category) {
  switch (category) {
    case Category::kGemm:
      return 0.10;
    case Category::kAttention:
      return 0.17;
    case Category::kElementwise:
      return 0.20;
    case Category::kEmbeddingForward:
    case Category::kEmbeddingBackward:
      return 0.15;
    case Category::kOptimizer:
      return 0.10;
    case Category::kSparseExchange:
    case Category::kDenseCollective:
      return 0.20;
    case Category::kHostCopy:
      return 0.20;
  }
  return 0.25;
}

// The gain if the time saved were overpriced by the error of the terms that changed.
double GainLowerBound(const Step& step) {
  double changed = 0, uncertain = 0;
  for (int c = 0; c < kCategoryCount; ++c) {
    const double delta =
        std::abs((step.busy_before[static_cast<size_t>(c)] - step.busy_after[static_cast<size_t>(c)]).value);
    changed += delta;
    uncertain += delta * ValidationError(static_cast<Category>(c));
  }
  // A change that moves no work (overlap, launches) is as uncertain as the worst term.
  const double error = changed > 0 ? uncertain / changed : 0.25;
  // Seconds a sample.
  const double before = 1 / step.rate_before;
  const double saved = (before - 1 / step.rate_after) * (1 - error);
  return before / (before - saved) - 1;
}

// The same change on the old machine: the rule's proposal with the same option there.
class OldMachine {
 public:
  OldMachine(const Model& model, const Cluster& cluster, Recipe recipe, const StepEstimate& estimate)
      : model_(model), cluster_(cluster), recipe_(std::move(recipe)), samples_per_s_(estimate.samples_per_s) {}

  std::optional<double> Gain(const Change& change, std::string* why_not) {
    Recipe revised = recipe_;
    const std::vector<std::string> rules = SplitPlus(change.rule), options = SplitPlus(change.option);
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::optional<Recipe> next = Apply(rules[i], options[i], revised, why_not);
      if (!next) return std::nullopt;
      revised = *next;
    }
    const Result<StepEstimate> estimate = EstimateStep(model_, revised, cluster_);
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
    recipe_ = std::move(revised);
    samples_per_s_ = estimate->samples_per_s;
    return gain;
  }

 private:
  static std::vector<std::string> SplitPlus(const std::string& text) {
    const size_t plus = text.find('+');
    if (plus == std::string::npos) return {text};
    return {text.substr(0, plus), text.substr(plus + 1)};
  }
  std::optional<Recipe> Apply(const std::string& name, const std::string& option, const Recipe& recipe,
                              std::string* why_not) const {
    for (const auto& rule : AllRules()) {
      if (rule->name() != name) continue;
      for (const Change& change : rule->Propose({model_, recipe, cluster_}, why_not)) {
        if (change.option == option) return change.recipe;
      }
    }
    if (why_not->empty()) *why_not = "set so already";
    return std::nullopt;
  }

  const Model& model_;
  const Cluster& cluster_;
  Recipe recipe_;
  double samples_per_s_;
};

std::string PublishedGain(const std::string& rule_names) {
  for (const auto& rule : AllRules()) {
    if (rule_names.rfind(rule->name(), 0) == 0) return rule->published();
  }
  return "";
}

LedgerEntry MakeEntry(const Step& step, OldMachine* old) {
  LedgerEntry entry;
  entry.step = step;
  entry.gain_to = step.rate_after / step.rate_before - 1;
  entry.gain_from = old->Gain(step.change, &entry.not_on_from);
  const double from = std::max(0.0, entry.gain_from.value_or(0.0));
  entry.gain_anywhere = std::min(from, std::max(0.0, entry.gain_to));
  entry.gain_only_here = (1 + entry.gain_to) / (1 + entry.gain_anywhere) - 1;
  entry.gain_lower_bound = GainLowerBound(step);
  entry.published = PublishedGain(step.change.rule);
  return entry;
}

// Where both recipes have a searched placement, the changes between them were priced with tables dealt greedily: what
// the two searches make of it is an entry of its own, so that the gains multiply to the speedup.
void AddPlacementEntry(Plan* plan) {
  if (plan->ported_recipe.balance != Balance::kSearched) return;
  double product = 1;
  for (const LedgerEntry& entry : plan->ledger) product *= 1 + entry.gain_to;
  const double rest = plan->speedup / product - 1;
  if (std::abs(rest) < 1e-6) return;
  const StepEstimate& after = plan->codesigned.estimate;
  LedgerEntry entry;
  entry.step.change = {"balance", "searched", "the placement of the tables, searched again for the revised recipe",
                       MathsClass::kReassociates, plan->codesigned.recipe};
  entry.step.after = after.step;
  entry.step.before = (1 + rest) * after.step;
  entry.step.rate_after = after.samples_per_s;
  entry.step.rate_before = after.samples_per_s / (1 + rest);
  entry.step.memory_before = entry.step.memory_after = after.memory.total;
  entry.step.binding_before = entry.step.binding_after = after.binding;
  entry.gain_to = rest;
  entry.gain_only_here = rest;
  entry.gain_lower_bound = std::min(rest, 0.0);
  entry.not_on_from = "searched there too";
  plan->ledger.push_back(std::move(entry));
}

std::string NoGainReason(const Plan& plan) {
  if (!plan.codesigned.estimate.memory.Fits()) return "no recipe fits on the new machine";
  const char* baseline =
      plan.baseline_source == "given" ? "the given recipe" : "the recipe that is best on the old machine";
  std::string reason = fmt::format("{}{} is within {:.1f} % of the best one found here; the step is bound by {}",
                                   baseline, plan.repairs.empty() ? "" : ", with what makes it fit here,",
                                   100 * (plan.speedup - 1), plan.codesigned.estimate.binding);
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
  SearchOptions search;
  search.allow = options.allow;
  if (options.baseline) {
    plan.baseline_source = "given";
    plan.baseline_recipe = *options.baseline;
    PORTOLAN_ASSIGN_OR_RETURN(plan.on_from, EstimateStep(model, plan.baseline_recipe, from));
    plan.estimates += 1;
  } else {
    plan.baseline_source = "searched";
    search.progress = report(0, 0.45, "the best recipe on the old machine");
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
    PORTOLAN_ASSIGN_OR_RETURN(plan.codesigned, SearchRecipe(model, start, to, search));
    plan.estimates += plan.codesigned.estimates;
    if (options.baseline || look == kSecondLooks) break;
    const Result<StepEstimate> there = EstimateStep(model, plan.codesigned.recipe, from);
    ++plan.estimates;
    const bool better = there && there->memory.Fits() && plan.on_from.memory.Fits() &&
                        there->global_batch == plan.on_from.global_batch &&
                        there->samples_per_s > kBetterThere * plan.on_from.samples_per_s;
    if (!better) break;
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
  PORTOLAN_ASSIGN_OR_RETURN(plan.baseline, EstimateStep(model, plan.ported_recipe, to));
  plan.speedup = plan.codesigned.estimate.samples_per_s / plan.baseline.samples_per_s;
  const auto before = TimeToQuality(model, static_cast<double>(plan.baseline.global_batch), plan.baseline.step);
  const auto after =
      TimeToQuality(model, static_cast<double>(plan.codesigned.estimate.global_batch), plan.codesigned.estimate.step);
  if (before && after) plan.time_to_quality_ratio = *before / *after;

  OldMachine old(model, from, plan.baseline_recipe, plan.on_from);
  for (const Step& step : plan.codesigned.steps) {
    if (!step.repair) plan.ledger.push_back(MakeEntry(step, &old));
  }
  AddPlacementEntry(&plan);
  if (plan.speedup < kNoGain) plan.no_gain_reason = NoGainReason(plan);
  report(0.9, 1, "the capacity dividend")(0.1);
  if (plan.codesigned.estimate.memory.Fits() && plan.on_from.memory.Fits()) {
    // Hundreds of estimates: tables are dealt greedily in all of them, the two steps to meet among them.
    const auto dealt = [](Recipe recipe) {
      recipe.balance = Balance::kGreedy;
      return recipe;
    };
    const Recipe from_recipe = dealt(plan.baseline_recipe);
    PORTOLAN_ASSIGN_OR_RETURN(const StepEstimate from_budget, EstimateStep(model, from_recipe, from));
    PORTOLAN_ASSIGN_OR_RETURN(const StepEstimate to_budget, EstimateStep(model, dealt(plan.ported_recipe), to));
    plan.dividends = CapacityDividends(model, from, from_recipe, from_budget.step, to, dealt(plan.codesigned.recipe),
                                       to_budget.step);
  }
  report(0.9, 1, "done")(1);
  return plan;
}

}  // namespace portolan
