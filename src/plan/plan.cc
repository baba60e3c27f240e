#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

constexpr double kNoGain = 1.005;

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
  const double saved = (step.before - step.after).value * (1 - error);
  return step.before.value / (step.before.value - saved) - 1;
}

// The same change on the old machine: the rule's proposal with the same option there.
class OldMachine {
 public:
  OldMachine(const Model& model, const Cluster& cluster, Recipe recipe, const StepEstimate& estimate)
      : model_(model), cluster_(cluster), recipe_(std::move(recipe)), step_(estimate.step) {}

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
    const double gain = step_ / estimate->step - 1;
    recipe_ = std::move(revised);
    step_ = estimate->step;
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
  Seconds step_;
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
  entry.gain_to = step.before / step.after - 1;
  entry.gain_from = old->Gain(step.change, &entry.not_on_from);
  const double from = std::max(0.0, entry.gain_from.value_or(0.0));
  entry.gain_anywhere = std::min(from, std::max(0.0, entry.gain_to));
  entry.gain_only_here = (1 + entry.gain_to) / (1 + entry.gain_anywhere) - 1;
  entry.gain_lower_bound = GainLowerBound(step);
  entry.published = PublishedGain(step.change.rule);
  return entry;
}

std::string NoGainReason(const Plan& plan) {
  if (!plan.codesigned.estimate.memory.Fits()) return "no recipe fits on the new machine";
  std::string reason = fmt::format(
      "the recipe that is best on the old machine is within {:.1f} % of the best one found here; the step is "
      "bound by {}",
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
  SearchOptions keep{options.allow, SearchOptions::Structure::kKeep};
  if (options.baseline) {
    plan.baseline_source = "given";
    plan.baseline_recipe = *options.baseline;
    PORTOLAN_ASSIGN_OR_RETURN(plan.on_from, EstimateStep(model, plan.baseline_recipe, from));
    plan.estimates += 1;
  } else {
    plan.baseline_source = "searched";
    PORTOLAN_ASSIGN_OR_RETURN(SearchResult searched, SearchRecipe(model, options.start, from, keep));
    plan.baseline_recipe = searched.recipe;
    plan.on_from = std::move(searched.estimate);
    plan.estimates += searched.estimates;
  }

  // The ported baseline's global batch is the old machine's.
  Recipe start = plan.baseline_recipe;
  if (from.devices != to.devices && start.global_batch == 0) {
    start.global_batch = start.GlobalBatch(from.devices);
    start.local_batch = 0;
  }
  PORTOLAN_ASSIGN_OR_RETURN(plan.codesigned, SearchRecipe(model, start, to, {options.allow}));
  plan.estimates += plan.codesigned.estimates;
  plan.ported_recipe = start;
  for (const Step& step : plan.codesigned.steps) {
    if (!step.repair) continue;
    plan.repairs.push_back(step);
    plan.ported_recipe = step.change.recipe;
  }
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
  if (plan.speedup < kNoGain) plan.no_gain_reason = NoGainReason(plan);
  if (plan.codesigned.estimate.memory.Fits() && plan.on_from.memory.Fits()) {
    plan.dividends = CapacityDividends(model, from, plan.baseline_recipe, plan.on_from.step, to, plan.codesigned.recipe,
                                       plan.baseline.step);
  }
  return plan;
}

}  // namespace portolan
