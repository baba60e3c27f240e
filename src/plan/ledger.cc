#include "plan/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

// Changes that are told as one.
using Group = std::vector<Change>;

// Names of several rules and their options are joined by it (Search::Pairs too); no name or option holds it.
constexpr char kAnd[] = " + ";

std::vector<std::string> SplitAnd(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = text.find(kAnd); at != std::string::npos; at = text.find(kAnd, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + sizeof(kAnd) - 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Change Joined(const Group& group) {
  Change joined = group.front();
  for (size_t i = 1; i < group.size(); ++i) {
    joined.rule += kAnd + group[i].rule;
    joined.option += kAnd + group[i].option;
    joined.what += "; " + group[i].what;
    joined.maths = std::max(joined.maths, group[i].maths);
  }
  return joined;
}

std::string PublishedGain(const std::string& rule_names) {
  for (const std::string& name : SplitAnd(rule_names)) {
    for (const auto& rule : AllRules()) {
      if (name == rule->name() && rule->published()[0] != '\0') return rule->published();
    }
  }
  return "";
}

Step MakeStep(const Group& group, const StepEstimate& before, const StepEstimate& after, Recipe recipe) {
  Step step;
  step.change = Joined(group);
  step.change.recipe = std::move(recipe);
  step.before = before.step;
  step.after = after.step;
  step.rate_before = before.samples_per_s;
  step.rate_after = after.samples_per_s;
  step.memory_before = before.memory.total;
  step.memory_after = after.memory.total;
  step.binding_before = before.binding;
  step.binding_after = after.binding;
  step.busy_before = before.busy;
  step.busy_after = after.busy;
  return step;
}

class Chain {
 public:
  Chain(const Model& model, const Cluster& cluster, const LedgerStart& start, const TermErrors& errors,
        EstimateMemo* memo)
      : model_(model), cluster_(cluster), start_(start), errors_(errors), memo_(memo) {}

  Result<Ledger> Build(const SearchResult& search) {
    for (const Step& step : search.steps) {
      if (!step.repair) groups_.push_back({step.change});
    }
    PORTOLAN_ASSIGN_OR_RETURN(const StepEstimate own, Price(start_.recipe));
    own_ = own;
    const bool moved =
        start_.placement == LedgerStart::Placement::kOfOldMachine && Gain(start_.estimate, own_) > kLeastGain;
    first_ = moved ? start_.estimate : own_;
    if (std::optional<std::vector<Link>> links = Replay(groups_)) {
      links_ = std::move(*links);
    } else {
      // With the tables placed as the recipes say, a recipe on the way does not fit: all changes are one.
      while (groups_.size() > 1) JoinGroups(0);
      links_ = {{search.recipe, search.estimate}};
    }
    while (const std::optional<size_t> weak = Weakest()) {
      if (!Drop(*weak)) Merge(*weak);
    }
    if (moved) AddEntry(Placed(), start_.estimate, own_, start_.recipe);
    for (size_t i = 0; i < links_.size(); ++i) AddEntry(groups_[i], Before(i), links_[i].estimate, links_[i].recipe);
    ledger_.start = first_;
    ledger_.recipe = links_.empty() ? start_.recipe : links_.back().recipe;
    ledger_.estimate = links_.empty() ? own_ : links_.back().estimate;
    return std::move(ledger_);
  }

 private:
  struct Link {
    Recipe recipe;
    StepEstimate estimate;
  };

  // Of what the search seeks: seconds to quality, else samples/s.
  double Gain(const StepEstimate& before, const StepEstimate& after) const {
    return ObjectiveGain(model_, before, after).value_or(after.samples_per_s / before.samples_per_s - 1);
  }
  const StepEstimate& Before(size_t i) const { return i == 0 ? own_ : links_[i - 1].estimate; }

  Result<StepEstimate> Price(const Recipe& recipe) {
    ++ledger_.estimates;
    return memo_->Price(model_, recipe, cluster_);
  }

  // All groups one after the other; nullopt where one does not apply, or does not fit, without what was left out.
  std::optional<std::vector<Link>> Replay(const std::vector<Group>& groups) {
    std::vector<Link> links;
    Recipe recipe = start_.recipe;
    for (size_t i = 0; i < groups.size(); ++i) {
      std::string ignored;
      for (const Change& change : groups[i]) {
        std::optional<Recipe> next = ApplyAgain(change, model_, recipe, cluster_, &ignored);
        if (!next) return std::nullopt;
        recipe = std::move(*next);
      }
      // What was priced before the first difference is not priced again.
      if (i < links_.size() && WriteRecipe(links_[i].recipe) == WriteRecipe(recipe)) {
        links.push_back(links_[i]);
        continue;
      }
      Result<StepEstimate> estimate = Price(recipe);
      if (!estimate || !estimate->memory.Fits()) return std::nullopt;
      links.push_back({recipe, std::move(*estimate)});
    }
    return links;
  }

  // The group that gains least, if that is no more than the least gain.
  std::optional<size_t> Weakest() const {
    std::optional<size_t> weakest;
    double least = kLeastGain;
    for (size_t i = 0; i < links_.size(); ++i) {
      const double gain = Gain(Before(i), links_[i].estimate);
      if (gain > least) continue;
      least = gain;
      weakest = i;
    }
    return weakest;
  }

  bool Drop(size_t i) {
    std::vector<Group> rest = groups_;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    std::optional<std::vector<Link>> links = Replay(rest);
    if (!links) return false;
    const double lost = -Gain(links_.back().estimate, links->empty() ? own_ : links->back().estimate);
    if (lost > kLeastGain) return false;
    const Change change = Joined(groups_[i]);
    ledger_.dropped.push_back(
        {change.rule, change.option,
         fmt::format("taken while tables were dealt greedily; with the tables placed for it {:+.2f} %, no gain",
                     100 * Gain(Before(i), links_[i].estimate))});
    groups_ = std::move(rest);
    links_ = std::move(*links);
    return true;
  }

  // Told together with the next change, which gains only after it, or the last one with the one before it.
  void Merge(size_t i) {
    const size_t first = i + 1 < groups_.size() ? i : i - 1;
    JoinGroups(first);
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void JoinGroups(size_t first) {
    Group& into = groups_[first];
    into.insert(into.end(), groups_[first + 1].begin(), groups_[first + 1].end());
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(first + 1));
  }

  Group Placed() const {
    return {{"balance", "searched", "the tables placed again for this machine instead of where the old one had them",
             MathsClass::kReassociates, start_.recipe}};
  }

  void AddEntry(const Group& group, const StepEstimate& before, const StepEstimate& after, const Recipe& recipe) {
    LedgerEntry entry;
    entry.step = MakeStep(group, before, after, recipe);
    entry.gain_to = after.samples_per_s / before.samples_per_s - 1;
    entry.gain_lower_bound = GainLowerBound(entry.step, errors_);
    entry.published = PublishedGain(entry.step.change.rule);
    ledger_.entries.push_back(std::move(entry));
  }

  const Model& model_;
  const Cluster& cluster_;
  const LedgerStart& start_;
  const TermErrors& errors_;
  EstimateMemo* memo_;
  StepEstimate own_, first_;  // the start with its recipe's placement, and as the gains are counted from
  std::vector<Group> groups_;
  std::vector<Link> links_;
  Ledger ledger_;
};

}  // namespace

double GainLowerBound(const Step& step, const TermErrors& errors) {
  double changed = 0, uncertain = 0;
  for (size_t c = 0; c < step.busy_before.size(); ++c) {
    const double delta = std::abs((step.busy_before[c] - step.busy_after[c]).value);
    changed += delta;
    uncertain += delta * errors.of_category[c];
  }
  // A change that moves no work (overlap, launches) is as uncertain as the step.
  const double error = std::min(1.0, changed > 0 ? uncertain / changed : errors.of_step);
  // Seconds a sample.
  const double before = 1 / step.rate_before;
  const double saved = (before - 1 / step.rate_after) * (1 - error);
  return before / (before - saved) - 1;
}

std::optional<Recipe> ApplyAgain(const Change& change, const Model& model, const Recipe& recipe, const Cluster& cluster,
                                 std::string* why_not) {
  Recipe revised = recipe;
  const std::vector<std::string> rules = SplitAnd(change.rule), options = SplitAnd(change.option);
  if (rules.size() != options.size()) {  // a block's name may hold the joint
    *why_not = "is not one change";
    return std::nullopt;
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    bool applied = false;
    for (const auto& rule : AllRules()) {
      if (rule->name() != rules[i]) continue;
      for (Change& proposed : rule->Propose({model, revised, cluster}, why_not)) {
        if (proposed.option != options[i]) continue;
        revised = std::move(proposed.recipe);
        applied = true;
        break;
      }
    }
    if (applied) continue;
    if (why_not->empty()) *why_not = "set so already";
    return std::nullopt;
  }
  return revised;
}

Result<Ledger> BuildLedger(const Model& model, const Cluster& cluster, const LedgerStart& start,
                           const SearchResult& search, const TermErrors& errors, EstimateMemo* memo) {
  return Chain(model, cluster, start, errors, memo).Build(search);
}

}  // namespace portolan
