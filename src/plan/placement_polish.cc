#include "plan/placement_polish.h"

#include <algorithm>
#include <numeric>

#include "plan/no_better_works.h"
#include "plan/split_options.h"

namespace portolan {
namespace {

// Trials at most, a priced step (0.1 ms on 8 devices) counting as ten of those that need none; and at most so many
// times tables x devices.
constexpr int kPricedTrials = 10;
constexpr int kTrials = 30000;
constexpr double kTrialShards = 1e8;

class Polish {
 public:
  Polish(StepPricer& pricer, PricedPlacement* best)
      : pricer_(pricer), devices_(pricer.cluster().devices), best_(*best) {
    const double size = static_cast<double>(pricer.model().tables.size()) * devices_;
    if (best->fits) no_better_.Add(best->work);
    left_ = static_cast<int>(std::min<double>(kTrials, kTrialShards / size));
    for (size_t t = 0; t < best_.placement.tables.size(); ++t) {
      if (!best_.placement.tables[t].ranks.empty() && pricer.shards().Used(t)) open_.push_back(t);
    }
  }

  void Run(PolishSplits splits) {
    for (bool improved = true; improved && left_ > 0;) {
      improved = false;
      for (const size_t a : open_) {
        if (splits != PolishSplits::kNo) {
          for (const TableSplit& split : SplitsOf(a)) improved |= TrySplits({{a, split}});
        }
        improved |= MoveAndSwap(a);
      }
      if (splits != PolishSplits::kPairs || improved) continue;
      for (size_t i = 0; i < open_.size(); ++i) {
        for (size_t j = i + 1; j < open_.size(); ++j) improved |= TryPairs(open_[i], open_[j]);
      }
    }
  }

 private:
  using Choice = std::vector<std::pair<size_t, TableSplit>>;  // tables and their new splits

  bool OnNodes(size_t t) const { return best_.placement.tables[t].sharding == Sharding::kTableRow; }
  const std::vector<int>& Ranks(size_t t) const { return best_.placement.tables[t].ranks; }
  bool Holds(size_t t, int rank) const { return std::find(Ranks(t).begin(), Ranks(t).end(), rank) != Ranks(t).end(); }

  std::vector<TableSplit> SplitsOf(size_t t) const {
    std::vector<TableSplit> splits =
        SplitOptions(pricer_.model(), pricer_.recipe(), pricer_.cluster(), t, best_.placement.tables[t]);
    std::erase_if(splits, [this](const TableSplit& split) { return split.shards() > devices_; });
    return splits;
  }

  // Ranks of a piece: of a table split inside nodes a node's, else one.
  int Span(size_t t) const { return OnNodes(t) ? pricer_.cluster().devices_per_node : 1; }

  bool MoveAndSwap(size_t a) {
    bool improved = false;
    const int span = Span(a);
    const size_t stride = static_cast<size_t>(span);
    for (size_t i = 0; i < Ranks(a).size(); i += stride) {
      for (int to = 0; to + span <= devices_ && left_ > 0; to += span) {
        if (!Holds(a, to)) improved |= TryRanks(a, i, a, i, to);
      }
      for (const size_t b : open_) {
        if (b <= a || Span(b) != span) continue;
        for (size_t j = 0; j < Ranks(b).size() && left_ > 0; j += stride) {
          const int here = Ranks(a)[i], there = Ranks(b)[j];
          if (!Holds(a, there) && !Holds(b, here)) improved |= TryRanks(a, i, b, j, there);
        }
      }
    }
    return improved;
  }

  // Piece i of table a to the ranks from `to` on; piece j of another table b to where that was.
  bool TryRanks(size_t a, size_t i, size_t b, size_t j, int to) {
    Placement next = best_.placement;
    for (size_t d = 0; d < static_cast<size_t>(Span(a)); ++d) {
      int& rank = next.tables[a].ranks[i + d];
      if (a != b) next.tables[b].ranks[j + d] = rank;
      rank = to + static_cast<int>(d);
    }
    return Try(std::move(next));
  }

  bool TryPairs(size_t a, size_t b) {
    bool improved = false;
    for (const TableSplit& of_a : SplitsOf(a)) {
      for (const TableSplit& of_b : SplitsOf(b)) improved |= TrySplits({{a, of_a}, {b, of_b}});
    }
    return improved;
  }

  // The tables' new shards, largest first, each on the ranks with least kernel time.
  bool TrySplits(const Choice& choice) {
    if (left_ <= 0) return false;
    Placement next = best_.placement;
    for (const auto& [t, split] : choice) next.tables[t] = {split.sharding, split.row_shards, split.column_shards, {}};
    std::vector<double> loads(static_cast<size_t>(devices_), 0.0);
    for (const size_t t : open_) {
      const TablePlacement& place = next.tables[t];
      if (place.ranks.empty()) continue;
      const double load = ShardLoad(t, SplitOf(place));
      for (const int rank : place.ranks) loads[static_cast<size_t>(rank)] += load;
    }
    Choice order = choice;
    std::stable_sort(order.begin(), order.end(), [this](const auto& x, const auto& y) {
      return ShardLoad(x.first, x.second) > ShardLoad(y.first, y.second);
    });
    for (const auto& [t, split] : order) {
      // Whole nodes by the load of all their ranks, else single ranks: the least loaded.
      const int span = split.sharding == Sharding::kTableRow ? pricer_.cluster().devices_per_node : 1;
      const double load = ShardLoad(t, split);
      std::vector<std::pair<double, int>> bins;
      for (int first = 0; first + span <= devices_; first += span) {
        bins.push_back({std::accumulate(loads.begin() + first, loads.begin() + first + span, 0.0), first});
      }
      std::sort(bins.begin(), bins.end());
      for (int i = 0; i < split.shards(); ++i) {
        const int rank = bins[static_cast<size_t>(i / span)].second + i % span;
        next.tables[t].ranks.push_back(rank);
        loads[static_cast<size_t>(rank)] += load;
      }
    }
    return Try(std::move(next));
  }

  double ShardLoad(size_t t, const TableSplit& split) {
    const ShardCost& cost = pricer_.shards().Price(t, split);
    return (cost.forward.total + cost.sort.total + cost.update.total).value;
  }

  bool Try(Placement placement) {
    --left_;
    if (best_.fits && no_better_.Cover(pricer_.Measure(placement))) return false;
    left_ -= kPricedTrials;
    PricedPlacement next(std::move(placement));
    SumRankLoads(pricer_.model(), pricer_.recipe(), &next.placement);
    pricer_.Price(next);
    if (!next.Beats(best_)) {
      if (best_.fits && next.step >= best_.step) no_better_.Add(next.work);
      return false;
    }
    best_ = std::move(next);
    if (best_.fits) no_better_.Add(best_.work);
    return true;
  }

  StepPricer& pricer_;
  const int devices_;
  PricedPlacement& best_;
  std::vector<size_t> open_;  // tables whose ranks are open
  NoBetterWorks no_better_;
  int left_;
};

}  // namespace

void PolishPlacement(StepPricer& pricer, PolishSplits splits, PricedPlacement* best) {
  Polish(pricer, best).Run(splits);
}

}  // namespace portolan
