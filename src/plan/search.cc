#include "plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace portolan {
namespace {

constexpr double kLeastGain = 0.001;  // of the objective
constexpr int kRounds = 8;

// Rules whose settings trade memory for time.
bool TradesMemory(const std::string& rule) {
  return rule == "recompute" || rule == "accumulation" || rule == "dense_parallelism" || rule == "replicate_tables" ||
         rule == "batch";
}
bool RevisesStructure(const std::string& rule) {
  return rule == "pad_dimensions" || rule == "merge_shared_input" || rule == "jagged_packing";
}

struct State {
  Recipe recipe;
  StepEstimate estimate;
};

class Search {
 public:
  Search(const Model& model, const Cluster& cluster, const SearchOptions& options)
      : model_(model), cluster_(cluster), options_(options) {}

  Result<SearchResult> Run(const Recipe& start) {
    PORTOLAN_ASSIGN_OR_RETURN(StepEstimate estimate, Price(start));
    State state{start, std::move(estimate)};
    Repair(state);
    if (state.estimate.memory.Fits()) {
      for (int round = 0; round < kRounds; ++round) {
        if (!Round(state) && !Pairs(state)) break;
      }
    }
    ListRejected(state);
    PORTOLAN_ASSIGN_OR_RETURN(result_.lower_bound, StepLowerBound(model_, state.recipe, cluster_));
    result_.lower_bound = std::min(result_.lower_bound, state.estimate.step);
    result_.gap = state.estimate.step / result_.lower_bound - 1;
    result_.recipe = std::move(state.recipe);
    result_.estimate = std::move(state.estimate);
    return std::move(result_);
  }

 private:
  Result<StepEstimate> Price(const Recipe& recipe) {
    ++result_.estimates;
    return EstimateStep(model_, recipe, cluster_);
  }

  bool Allowed(const Change& change) const {
    return change.maths != MathsClass::kChangesMaths || options_.allow.count(change.rule) > 0;
  }

  std::vector<Change> Proposals(const Rule& rule, const Recipe& recipe, std::string* why_not) const {
    if (options_.structure == SearchOptions::Structure::kKeep && RevisesStructure(rule.name())) {
      *why_not = "the structure is kept";
      return {};
    }
    return rule.Propose({model_, recipe, cluster_}, why_not);
  }

  double ObjectiveSeconds(const StepEstimate& estimate) const {
    return ObjectiveOf(model_, static_cast<double>(estimate.global_batch), estimate.step).seconds;
  }

  // Whether `candidate` beats `current` by more than kLeastGain; estimates of different objectives do not compare.
  bool Better(const StepEstimate& candidate, const StepEstimate& current) const {
    if (!candidate.memory.Fits()) return false;
    const Objective a = ObjectiveOf(model_, static_cast<double>(candidate.global_batch), candidate.step);
    const Objective b = ObjectiveOf(model_, static_cast<double>(current.global_batch), current.step);
    return a.to_quality == b.to_quality && a.seconds < b.seconds * (1 - kLeastGain);
  }

  void Take(State& state, Change change, StepEstimate estimate, bool repair) {
    Step step;
    step.before = state.estimate.step;
    step.after = estimate.step;
    step.memory_before = state.estimate.memory.total;
    step.memory_after = estimate.memory.total;
    step.binding_before = state.estimate.binding;
    step.binding_after = estimate.binding;
    step.busy_before = state.estimate.busy;
    step.busy_after = estimate.busy;
    step.repair = repair;
    state.recipe = change.recipe;
    state.estimate = std::move(estimate);
    step.change = std::move(change);
    result_.steps.push_back(std::move(step));
  }

  // Makes an over-full recipe fit: the single setting that fits and costs least; failing that, the one that frees most,
  // again and again.
  void Repair(State& state) {
    for (int attempt = 0; attempt < 6 && !state.estimate.memory.Fits(); ++attempt) {
      std::optional<Change> best;
      std::optional<StepEstimate> best_estimate;
      for (const auto& rule : AllRules()) {
        std::string why_not;
        for (Change& change : Proposals(*rule, state.recipe, &why_not)) {
          // Accumulation may repair: the sum of gradients is the same but for the tables' updates.
          if (!Allowed(change) && change.rule != "accumulation") continue;
          Result<StepEstimate> estimate = Price(change.recipe);
          if (!estimate || estimate->memory.total >= state.estimate.memory.total) continue;
          if (best_estimate && !BetterRepair(*estimate, *best_estimate)) continue;
          best = std::move(change);
          best_estimate = std::move(*estimate);
        }
      }
      if (!best) return;
      Take(state, std::move(*best), std::move(*best_estimate), /*repair=*/true);
    }
  }
  bool BetterRepair(const StepEstimate& a, const StepEstimate& b) const {
    if (a.memory.Fits() != b.memory.Fits()) return a.memory.Fits();
    return a.memory.Fits() ? ObjectiveSeconds(a) < ObjectiveSeconds(b) : a.memory.total < b.memory.total;
  }

  bool Round(State& state) {
    bool taken = false;
    for (const auto& rule : AllRules()) {
      std::string why_not;
      std::optional<Change> best;
      std::optional<StepEstimate> best_estimate;
      for (Change& change : Proposals(*rule, state.recipe, &why_not)) {
        if (!Allowed(change)) continue;
        Result<StepEstimate> estimate = Price(change.recipe);
        if (!estimate || !Better(*estimate, best_estimate ? *best_estimate : state.estimate)) continue;
        best = std::move(change);
        best_estimate = std::move(*estimate);
      }
      if (!best) continue;
      Take(state, std::move(*best), std::move(*best_estimate), /*repair=*/false);
      taken = true;
    }
    return taken;
  }

  // One setting that alone does not fit or pay, with each setting of another memory rule.
  bool Pairs(State& state) {
    std::optional<Change> first, second;
    std::optional<StepEstimate> best_estimate;
    for (const auto& rule : AllRules()) {
      if (!TradesMemory(rule->name())) continue;
      std::string why_not;
      for (const Change& change : Proposals(*rule, state.recipe, &why_not)) {
        if (!Allowed(change)) continue;
        for (const auto& other : AllRules()) {
          if (!TradesMemory(other->name()) || other->name() <= rule->name()) continue;
          for (Change& pair : Proposals(*other, change.recipe, &why_not)) {
            if (!Allowed(pair)) continue;
            Result<StepEstimate> estimate = Price(pair.recipe);
            if (!estimate || !Better(*estimate, best_estimate ? *best_estimate : state.estimate)) continue;
            first = change;
            second = std::move(pair);
            best_estimate = std::move(*estimate);
          }
        }
      }
    }
    if (!second) return false;
    Change both = std::move(*second);
    both.rule = first->rule + "+" + both.rule;
    both.option = first->option + "+" + both.option;
    both.what = first->what + "; " + both.what;
    both.maths = std::max(first->maths, both.maths);
    Take(state, std::move(both), std::move(*best_estimate), /*repair=*/false);
    return true;
  }

  void ListRejected(const State& state) {
    for (const auto& rule : AllRules()) {
      std::string why_not;
      const std::vector<Change> changes = Proposals(*rule, state.recipe, &why_not);
      if (changes.empty()) result_.rejected.push_back({rule->name(), "", "does not apply: " + why_not});
      for (const Change& change : changes) {
        const Result<StepEstimate> estimate = Price(change.recipe);
        std::string reason;
        if (!estimate) {
          reason = FormatError(estimate.error());
        } else {
          const double gain = ObjectiveSeconds(state.estimate) / ObjectiveSeconds(*estimate) - 1;
          reason = fmt::format("{:+.1f} %", 100 * gain);
          if (!estimate->memory.Fits()) {
            reason += fmt::format(", does not fit: {:.0f} of {:.0f} GB", estimate->memory.total.value * 1e-9,
                                  estimate->memory.capacity.value * 1e-9);
          } else if (!Allowed(change)) {
            reason += fmt::format(", changes the maths: needs --allow {}", change.rule);
          } else if (gain <= kLeastGain) {
            reason += ", no gain";
          }
        }
        result_.rejected.push_back({change.rule, change.option, reason});
      }
    }
  }

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  SearchResult result_;
};

}  // namespace

Result<SearchResult> SearchRecipe(const Model& model, const Recipe& start, const Cluster& cluster,
                                  const SearchOptions& options) {
  return Search(model, cluster, options).Run(start);
}

}  // namespace portolan
