#include <algorithm>
#include <functional>
#include <map>

#include "plan/no_better_works.h"
#include "plan/placement_polish.h"
#include "plan/split_options.h"

namespace portolan {
namespace {

constexpr double kMostSplits = 20000;  // combinations of the tables' splits
// Costs of a search that ends before all was tried: measured placements (3 us each), and priced steps at 30 of them.
constexpr int kMostTrials = 60000;
constexpr int kPricedTrials = 30;

class Enumeration {
 public:
  Enumeration(StepPricer& pricer, PricedPlacement* best)
      : pricer_(pricer), devices_(pricer.cluster().devices), best_(best), trial_(best->placement) {
    if (best->fits) no_better_.Add(best->work);

    for (size_t t = 0; t < trial_.tables.size(); ++t) {
      const TablePlacement& place = trial_.tables[t];
      if (place.ranks.empty() || !pricer.shards().Used(t)) continue;
      std::vector<TableSplit> splits = SplitOptions(pricer.model(), pricer.recipe(), pricer.cluster(), t, place);
      std::erase_if(splits, [this](const TableSplit& split) { return split.shards() > devices_; });
      if (splits.empty()) splits = {SplitOf(place)};
      tables_.push_back(t);
      splits_.push_back(std::move(splits));
    }
  }

  void Run() {
    double combinations = 1;
    for (const auto& splits : splits_) combinations *= static_cast<double>(splits.size());
    if (tables_.empty() || combinations > kMostSplits) return;
    FindPromising(0);
    std::stable_sort(promising_.begin(), promising_.end(),
                     [](const Promising& a, const Promising& b) { return a.even < b.even; });
    for (const Promising& promising : promising_) {
      if (best_->fits && promising.even >= best_->step) break;
      DealAll(promising.splits);
      if (left_ <= 0) break;
    }
  }

 private:
  // One split a table, and the step if every rank had the mean of their shards, but at least the largest: at most that
  // of any way to deal them.
  struct Promising {
    std::vector<TableSplit> splits;
    Seconds even;
  };

  static void Assign(const TableSplit& split, TablePlacement* place) {
    place->sharding = split.sharding;
    place->row_shards = split.row_shards;
    place->column_shards = split.column_shards;
  }

  void FindPromising(size_t i) {
    if (left_ <= 0) return;
    if (i < tables_.size()) {
      for (const TableSplit& split : splits_[i]) {
        TablePlacement& place = trial_.tables[tables_[i]];
        Assign(split, &place);
        place.ranks.resize(static_cast<size_t>(split.shards()));
        for (size_t s = 0; s < place.ranks.size(); ++s) place.ranks[s] = static_cast<int>(s);
        FindPromising(i + 1);
      }
      return;
    }
    EmbeddingWork even = MeasureEmbeddings(pricer_.shards(), trial_, RankBalance::kMean);
    RaiseToLargestShard(&even);
    --left_;
    if (best_->fits && no_better_.Cover(even)) return;
    left_ -= kPricedTrials;
    Promising promising{{}, pricer_.StepOf(even)};
    if (best_->fits && promising.even >= best_->step) {
      no_better_.Add(even);
      return;
    }
    for (const size_t t : tables_) promising.splits.push_back(SplitOf(trial_.tables[t]));
    promising_.push_back(std::move(promising));
  }

  void RaiseToLargestShard(EmbeddingWork* even) {
    for (const size_t t : tables_) {
      const ShardCost& cost = pricer_.shards().Price(t, SplitOf(trial_.tables[t]));
      const double factor = std::max(cost.first_factor, cost.other_factor);
      const auto raise = [factor](const Estimate& shard, Estimate* sum) {
        sum->total = std::max(sum->total, sum->launch + factor * shard.total);
      };
      raise(cost.forward, &even->forward);
      raise(cost.sort, &even->index_sort);
      raise(cost.update, &even->backward);
    }
  }

  // Every way to deal the shards, those of tables split inside nodes first.
  void DealAll(const std::vector<TableSplit>& splits) {
    order_.clear();
    for (size_t i = 0; i < tables_.size(); ++i) {
      Assign(splits[i], &trial_.tables[tables_[i]]);
      trial_.tables[tables_[i]].ranks.clear();
      order_.push_back(tables_[i]);
    }
    std::stable_partition(order_.begin(), order_.end(), [this](size_t t) { return OnNodes(t); });
    DealFrom(0, std::vector<int>(static_cast<size_t>(devices_), 0));
  }

  bool OnNodes(size_t t) const { return trial_.tables[t].sharding == Sharding::kTableRow; }

  // `held`: a number for what each rank holds; ranks with the same one are alike.
  void DealFrom(size_t i, const std::vector<int>& held) {
    if (left_ <= 0) return;
    if (i == order_.size()) {
      Try();
      return;
    }
    const size_t t = order_[i];
    const int span = OnNodes(t) ? pricer_.cluster().devices_per_node : 1;
    const size_t pieces = static_cast<size_t>(SplitOf(trial_.tables[t]).shards() / span);
    const ShardCost& cost = pricer_.shards().Price(t, SplitOf(trial_.tables[t]));
    // Which piece is the first only matters where it differs from the others.
    const bool alike = cost.first_factor == cost.other_factor;
    // Places of the same content stand next to each other, so that of some of them the first ones can be taken.
    std::vector<int> places;
    for (int rank = 0; rank + span <= devices_; rank += span) places.push_back(rank);
    const auto content = [&](int first) { return held.begin() + first; };
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
      return std::lexicographical_compare(content(a), content(a) + span, content(b), content(b) + span);
    });
    const auto same = [&](int a, int b) { return std::equal(content(a), content(a) + span, content(b)); };
    std::vector<int> chosen;
    const std::function<void(size_t)> choose_others = [&](size_t from) {
      if (left_ <= 0) return;
      if (chosen.size() == pieces) {
        Place(i, held, span, chosen);
        return;
      }
      int tried = -1;
      for (size_t p = from; p < places.size(); ++p) {
        if (places[p] == chosen.front() || (tried >= 0 && same(tried, places[p]))) continue;
        tried = places[p];
        chosen.push_back(tried);
        choose_others(p + 1);
        chosen.pop_back();
      }
    };
    for (size_t p = 0; p < places.size(); ++p) {
      if (p > 0 && same(places[p], places[p - 1])) continue;
      chosen = {places[p]};
      choose_others(alike ? p + 1 : 0);
    }
  }

  void Place(size_t i, const std::vector<int>& held, int span, const std::vector<int>& chosen) {
    std::vector<int>& ranks = trial_.tables[order_[i]].ranks;
    ranks.clear();
    std::vector<int> now = held;
    for (const int first : chosen) {
      for (int d = 0; d < span; ++d) {
        const int kind = 2 * static_cast<int>(i) + (ranks.empty() ? 1 : 2);
        int& rank = now[static_cast<size_t>(first + d)];
        rank = contents_.emplace(std::pair(rank, kind), static_cast<int>(contents_.size()) + 1).first->second;
        ranks.push_back(first + d);
      }
    }
    DealFrom(i + 1, now);
    ranks.clear();
  }

  void Try() {
    --left_;
    if (best_->fits && no_better_.Cover(pricer_.Measure(trial_))) return;
    left_ -= kPricedTrials;
    PricedPlacement next(trial_);
    SumRankLoads(pricer_.model(), pricer_.recipe(), &next.placement);
    pricer_.Price(next);
    if (next.Beats(*best_)) {
      *best_ = std::move(next);
      if (best_->fits) no_better_.Add(best_->work);
    } else if (best_->fits && next.step >= best_->step) {
      no_better_.Add(next.work);
    }
  }

  StepPricer& pricer_;
  const int devices_;
  PricedPlacement* const best_;
  Placement trial_;
  std::vector<size_t> tables_, order_;           // whose split and ranks are open
  std::vector<std::vector<TableSplit>> splits_;  // of them
  std::vector<Promising> promising_;
  std::map<std::pair<int, int>, int> contents_;  // of a rank, by what it held and what was added
  NoBetterWorks no_better_;
  int left_ = kMostTrials;
};

}  // namespace

void TryAllPlacements(StepPricer& pricer, PricedPlacement* best) { Enumeration(pricer, best).Run(); }

}  // namespace portolan
