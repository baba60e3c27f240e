#include "plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace portolan {
namespace {

constexpr int kRounds = 8;

// Rules whose settings trade memory for time.
bool TradesMemory(const std::string& rule) {
  return rule == "recompute" || rule == "accumulation" || rule == "dense_parallelism" || rule == "replicate_tables" ||
         rule == "batch";
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
    // The placement is searched once, for the recipe that the rules give: until then tables are dealt greedily.
    Recipe dealt = start;
    dealt.balance = Balance::kGreedy;
    PORTOLAN_ASSIGN_OR_RETURN(StepEstimate estimate, Price(dealt));
    State state{std::move(dealt), std::move(estimate)};
    RepairIfNeeded(state);
    if (state.estimate.memory.Fits()) {
      for (int round = 0; round < kRounds; ++round) {
        // Most searches end in the third round.
        ReportRange(1 - std::pow(0.5, round), 1 - std::pow(0.5, round + 1));
        if (!Round(state) && !Pairs(state)) break;
      }
    }
    ListRejected(state);
    SearchPlacement(state, start.balance);
    if (options_.progress) options_.progress(1);
    result_.lower_bound = state.estimate.step;
    if (options_.bound == SearchOptions::Bound::kCompute) {
      PORTOLAN_ASSIGN_OR_RETURN(const Seconds bound, StepLowerBound(model_, state.recipe, cluster_));
      result_.lower_bound = std::min(bound, state.estimate.step);
    }
    result_.gap = state.estimate.step / result_.lower_bound - 1;
    result_.recipe = std::move(state.recipe);
    result_.estimate = std::move(state.estimate);
    return std::move(result_);
  }

 private:
  // The prices of a round move the share done from `low` towards `high`.
  void ReportRange(double low, double high) {
    report_low_ = low;
    report_high_ = high;
    priced_in_range_ = 0;
  }
  void Report() {
    if (!options_.progress) return;
    constexpr double kTypicalRound = 60;  // settings that the rules propose
    const double part = 1 - std::exp(-++priced_in_range_ / kTypicalRound);
    options_.progress(report_low_ + (report_high_ - report_low_) * part);
  }

  Result<StepEstimate> Price(const Recipe& recipe) {
    ++result_.estimates;
    Report();
    return options_.memo ? options_.memo->Price(model_, recipe, cluster_) : EstimateStep(model_, recipe, cluster_);
  }

  bool Allowed(const Change& change) const {
    return change.maths != MathsClass::kChangesMaths || options_.allow.count(change.rule) > 0;
  }

  // The searched placement of the final recipe: a change of its own unless the start had it already.
  void SearchPlacement(State& state, Balance start) {
    for (const auto& rule : AllRules()) {
      if (!IsBalance(*rule)) continue;
      std::string why_not;
      for (Change& change : rule->Propose({model_, state.recipe, cluster_}, &why_not)) {
        Result<StepEstimate> estimate = Price(change.recipe);
        if (!estimate) continue;
        if (start == Balance::kSearched) {
          state.recipe = std::move(change.recipe);
          state.estimate = std::move(*estimate);
        } else if (Better(*estimate, state.estimate)) {
          Take(state, std::move(change), std::move(*estimate), /*repair=*/false);
        }
      }
    }
  }
  static bool IsBalance(const Rule& rule) { return std::string(rule.name()) == "balance"; }

  std::vector<Change> Proposals(const Rule& rule, const Recipe& recipe, std::string* why_not) const {
    if (IsBalance(rule)) {
      *why_not = "comes after the others, for the recipe that they give";
      return {};
    }
    if (options_.structure == SearchOptions::Structure::kKeep && rule.RevisesStructure()) {
      *why_not = "the structure is kept";
      return {};
    }
    std::vector<Change> changes = rule.Propose({model_, recipe, cluster_}, why_not);
    if (std::string(rule.name()) == "host_tables" && recipe.host_tables_min == Bytes(0) && !changes.empty() &&
        host_tables_ == HostTables::kOnlyKept) {
      *why_not = "only where nothing else makes the model fit";
      changes.clear();
    }
    return changes;
  }

  std::optional<double> Gain(const StepEstimate& before, const StepEstimate& after) const {
    return ObjectiveGain(model_, before, after);
  }
  // Whether `candidate` fits and beats `current` by more than kLeastGain.
  bool Better(const StepEstimate& candidate, const StepEstimate& current) const {
    return candidate.memory.Fits() && Gain(current, candidate).value_or(0) > kLeastGain;
  }

  void Take(State& state, Change change, StepEstimate estimate, bool repair) {
    Step step;
    step.before = state.estimate.step;
    step.after = estimate.step;
    step.rate_before = state.estimate.samples_per_s;
    step.rate_after = estimate.samples_per_s;
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

  // Makes an over-full recipe fit: first with settings that are allowed, then with tables in host memory, whose cache
  // is priced in a steady state that is reached late, then with gradient accumulation too.
  void RepairIfNeeded(State& state) {
    if (state.estimate.memory.Fits()) return;
    const State start = state;
    Repair(state, /*also=*/"");
    if (state.estimate.memory.Fits()) return;
    result_.steps.clear();
    state = start;
    host_tables_ = HostTables::kAllowed;
    Repair(state, /*also=*/"");
    if (!state.estimate.memory.Fits()) {
      result_.steps.clear();
      state = start;
      Repair(state, /*also=*/"accumulation");
    }
    host_tables_ = HostTables::kOnlyKept;
    if (state.estimate.memory.Fits()) return;
    // Nothing makes it fit: the recipe is left as it was.
    result_.steps.clear();
    state = start;
  }
  // The single setting that fits and costs least; failing that, the one that frees most, again and again.
  void Repair(State& state, const std::string& also) {
    constexpr int kAttempts = 6;
    for (int attempt = 0; attempt < kAttempts && !state.estimate.memory.Fits(); ++attempt) {
      std::optional<Change> best;
      std::optional<StepEstimate> best_estimate;
      for (const auto& rule : AllRules()) {
        std::string why_not;
        for (Change& change : Proposals(*rule, state.recipe, &why_not)) {
          if (!Allowed(change) && change.rule != also) continue;
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
    if (!a.memory.Fits()) return a.memory.total < b.memory.total;
    const std::optional<double> gain = Gain(b, a);
    return gain ? *gain > 0 : a.samples_per_s > b.samples_per_s;
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
    both.rule = first->rule + " + " + both.rule;
    both.option = first->option + " + " + both.option;
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
          const std::optional<double> gain = Gain(state.estimate, *estimate);
          reason =
              gain ? fmt::format("{:+.1f} %", 100 * *gain)
                   : fmt::format("samples to quality are not known at a global batch of {}", estimate->global_batch);
          if (!estimate->memory.Fits()) {
            reason += fmt::format(", does not fit: {:.0f} of {:.0f} GB", estimate->memory.total.value * 1e-9,
                                  estimate->memory.capacity.value * 1e-9);
          } else if (!Allowed(change)) {
            reason += fmt::format(", changes the maths: needs --allow {}", change.rule);
          } else if (gain && *gain <= kLeastGain) {
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
  // Whether tables may move to host memory, or only stay there, be cached otherwise or come back.
  enum class HostTables { kOnlyKept, kAllowed } host_tables_ = HostTables::kOnlyKept;
  SearchResult result_;
  double report_low_ = 0, report_high_ = 0.05, priced_in_range_ = 0;
};

}  // namespace

std::optional<double> ObjectiveGain(const Model& model, const StepEstimate& before, const StepEstimate& after) {
  const Objective a = ObjectiveOf(model, static_cast<double>(before.global_batch), before.step);
  const Objective b = ObjectiveOf(model, static_cast<double>(after.global_batch), after.step);
  if (a.to_quality != b.to_quality) return std::nullopt;
  return a.seconds / b.seconds - 1;
}

Result<SearchResult> SearchRecipe(const Model& model, const Recipe& start, const Cluster& cluster,
                                  const SearchOptions& options) {
  return Search(model, cluster, options).Run(start);
}

}  // namespace portolan
