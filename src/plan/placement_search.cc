#include "plan/placement_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "plan/host_tables.h"
#include "plan/placement_moves.h"

namespace portolan {
namespace {

using Option = SplitLoad;
using Parts = LoadParts;
constexpr size_t kParts = kLoadParts, kMemory = kMemoryLoad;

// A full rank's memory against an even rank's kernels, while shards are dealt and first moved: tables that take much
// room and little time must leave room on every rank for those that take time.
constexpr double kMemoryWeight = 0.1;

// Of all ranks' memory: what tables may take together for the limit of one rank to be kept.
constexpr double kDealable = 0.97;

// A table may be split when its whole shard has at least this share of a rank's mean load in some part.
constexpr size_t kManyTables = 100;  // above it only hot tables are split
constexpr double kHotShare = 0.15;
constexpr double kFewPieces = 32;   // that any of few tables may have
constexpr double kMostPieces = 10;  // of a table with the load of one rank
// Largest shards, of what a rank has for them, that a search starts afresh with.
constexpr double kStartShares[] = {0.5, 0.7, 0.85, 1};
constexpr int kTurns = 1, kChainTurns = 3;  // of dealing pairs anew and of descent
constexpr uint32_t kChains = 3;             // from one start that is dealt afresh

// Splits that a start may use.
enum class Family { kAny, kRows, kColumns, kNodes };

bool InFamily(const Option& option, Family family) {
  switch (family) {
    case Family::kAny:
      return true;
    case Family::kRows:
      return option.split.sharding == Sharding::kTable || option.split.sharding == Sharding::kRow;
    case Family::kColumns:
      return option.split.sharding == Sharding::kTable || option.split.sharding == Sharding::kColumn;
    case Family::kNodes:
      return option.on_nodes;
  }
  return true;
}

class Search : private PlacementMoves {
 public:
  Search(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights, Bytes memory,
         SearchSplits splits)
      : PlacementMoves(pricer.cluster().devices, memory),
        pricer_(pricer),
        weights_(weights),
        splits_(splits),
        per_node_(std::min(devices_, pricer.cluster().devices_per_node)) {
    // A start that does not fit may be made to, unless all tables together leave no room to deal them.
    double all = 0, fullest = 0;
    for (const RankLoad& rank : start.ranks) {
      all += rank.table_bytes + rank.state_bytes;
      fullest = std::max(fullest, rank.table_bytes + rank.state_bytes);
    }
    if (all > kDealable * memory_ * devices_) memory_ = std::max(memory_, fullest);
    double kernels = 0;
    for (size_t t = 0; t < start.tables.size(); ++t) {
      const TablePlacement& place = start.tables[t];
      if (!pricer.Used(t)) continue;
      const double shards = place.ranks.empty() ? devices_ : static_cast<double>(place.ranks.size());
      kernels += Compute(Weighted(pricer.Price(t, SplitOf(place)), 1.0)) * shards / devices_;
    }
    byte_weight_ = memory_ > 0 ? kMemoryWeight * kernels / memory_ : 0.0;
    for (size_t t = 0; t < start.tables.size(); ++t) Take(t, start.tables[t]);
    SetHeat();
  }

  // Deals all open tables afresh, largest shard first. Each table takes the split that costs least at an even balance
  // among those whose largest shard is at most `share` of what a rank has for them, in time and memory; where none is,
  // or no rank has room, the next larger split.
  void Restart(double share, Family family) {
    double even = 0, base = std::numeric_limits<double>::infinity(), base_bytes = base;
    for (const Parts& load : loads_) even += Compute(load) / devices_;
    for (OpenTable& open : open_) {
      const Option& option = open.options[open.chosen];
      for (size_t i = 0; i < open.places.size(); ++i) Put(option, i, open.places[i], -1.0);
      received_ -= option.received;
    }
    for (const Parts& load : loads_) base = std::min(base, Compute(load));
    for (const double bytes : bytes_) base_bytes = std::min(base_bytes, bytes);
    // Of the largest shard, as a share of a rank.
    const auto size = [&](const Option& option) {
      return std::max(std::max(Compute(option.first), Compute(option.other)) / std::max(even - base, 1e-30),
                      option.bytes / std::max(memory_ - base_bytes, 1.0));
    };
    struct Dealt {
      double size;
      OpenTable* open;
      std::vector<size_t> options;  // in order of trial
    };
    std::vector<Dealt> order;
    for (OpenTable& open : open_) {
      Dealt dealt{0, &open, {}};
      for (size_t o = 0; o < open.options.size(); ++o) {
        if (open.options[o].pieces * open.options[o].span > devices_) continue;
        if (InFamily(open.options[o], family)) dealt.options.push_back(o);
      }
      if (dealt.options.empty()) dealt.options.push_back(open.chosen);
      const auto worse = [&](size_t o) { return std::max(1.0, size(open.options[o]) / share); };
      std::stable_sort(dealt.options.begin(), dealt.options.end(), [&](size_t a, size_t b) {
        const double left = worse(a), right = worse(b);
        return left != right ? left < right : EvenCost(open.options[a]) < EvenCost(open.options[b]);
      });
      dealt.size = size(open.options[dealt.options[0]]);
      order.push_back(std::move(dealt));
    }
    std::stable_sort(order.begin(), order.end(), [](const Dealt& a, const Dealt& b) { return a.size > b.size; });
    std::vector<int> places;
    for (auto& [unused, open, options] : order) {
      Normalise(Smoothness::kCoarse);
      Objective();
      bool dealt = false;
      for (size_t i = 0; i < options.size() && !dealt; ++i) {
        open->chosen = options[i];
        dealt = Deal(open->options[options[i]], places);
      }
      if (!dealt) {
        open->chosen = options[0];
        const Option& option = open->options[options[0]];
        places.clear();
        for (int i = 0; i < option.pieces; ++i) {
          places.push_back(i);
          Put(option, static_cast<size_t>(i), i, 1.0);
        }
      }
      open->places = places;
      received_ += open->options[open->chosen].received;
    }
  }

  // Deals all open tables afresh in the splits that they have, largest shard first.
  void Redeal() {
    std::vector<std::pair<double, OpenTable*>> order;
    for (OpenTable& open : open_) {
      const Option& option = open.options[open.chosen];
      for (size_t i = 0; i < open.places.size(); ++i) Put(option, i, open.places[i], -1.0);
      double size = 0;
      for (size_t c = 0; c < kMemory; ++c) size += std::max(option.first[c], option.other[c]);
      order.push_back({size, &open});
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<int> places;
    for (const auto& [unused, open] : order) {
      const Option& option = open->options[open->chosen];
      Normalise(Smoothness::kCoarse);
      Objective();
      if (Deal(option, places)) {
        open->places = places;
      } else {  // no room: as they were
        for (size_t i = 0; i < open->places.size(); ++i) Put(option, i, open->places[i], 1.0);
      }
    }
  }

  void Run() {
    if (open_.empty()) return;
    Descend(Smoothness::kCoarse);
    Descend(Smoothness::kFine);
  }

  // Deals the shards of pairs of ranks anew, and improves what that leaves, by turns.
  void Repack(int turns, uint32_t seed) {
    if (open_.empty()) return;
    random_ = seed;
    DealPairs();
    for (int turn = 0; turn < turns; ++turn) {
      Run();
      DealPairs();
    }
  }

  bool MaySplit() const {
    return std::any_of(open_.begin(), open_.end(), [](const OpenTable& open) { return open.options.size() > 1; });
  }

  void Write(Placement& placement) const {
    for (const OpenTable& open : open_) {
      TablePlacement& place = placement.tables[open.table];
      const Option& option = open.options[open.chosen];
      place.sharding = option.split.sharding;
      place.row_shards = option.split.row_shards;
      place.column_shards = option.split.column_shards;
      place.ranks.clear();
      for (const int at : open.places) {
        for (int d = 0; d < option.span; ++d) place.ranks.push_back(at * option.span + d);
      }
    }
  }

 private:
  // Kernels of a rank or shard.
  static double Compute(const Parts& parts) { return parts[0] + parts[1] + parts[2]; }
  // What an option adds to the objective when every rank has the same load.
  double EvenCost(const Option& option) const {
    const double first = Compute(option.first) + option.first[4], other = Compute(option.other) + option.other[4];
    return (first + other * (option.pieces * option.span - 1)) / devices_ + option.received;
  }

  Parts Weighted(const ShardCost& cost, double factor) const {
    return {
        weights_.forward * factor * cost.forward.total.value, weights_.sort * factor * cost.sort.total.value,
        weights_.update * factor * cost.update.total.value,   weights_.exchanged_element * factor * cost.sent_elements,
        weights_.reduced_element * cost.reduced_elements,     0.0};
  }

  Option MakeOption(size_t t, const TableSplit& split) {
    const ShardCost& cost = pricer_.Price(t, split);
    const Recipe& recipe = pricer_.recipe();
    Option option;
    option.split = split;
    option.on_nodes = split.sharding == Sharding::kTableRow && split.row_shards % per_node_ == 0;
    option.span = option.on_nodes ? per_node_ : 1;
    option.pieces = option.on_nodes ? split.row_shards / per_node_ : split.shards();
    option.first = Weighted(cost, cost.first_factor);
    option.other = Weighted(cost, cost.other_factor);
    option.received = weights_.exchanged_element * cost.received_elements;
    option.bytes =
        DeviceRows(pricer_.model(), recipe, t) * RowAndStateBytes(pricer_.model(), recipe, t).value / split.shards();
    option.first[kMemory] = option.other[kMemory] = byte_weight_ * option.bytes;
    return option;
  }

  // A table of the start: open when its pieces have places of their own, else part of the base load.
  void Take(size_t t, const TablePlacement& place) {
    OpenTable open;
    open.table = t;
    open.options.push_back(MakeOption(t, SplitOf(place)));
    const Option current = open.options[0];
    if (place.ranks.empty() || !pricer_.Used(t)) {
      const bool everywhere = place.ranks.empty();
      const bool copies = place.sharding == Sharding::kDataParallel;
      const size_t count = everywhere ? static_cast<size_t>(devices_) : place.ranks.size();
      for (size_t s = 0; s < count; ++s) {
        const size_t rank = everywhere ? s : static_cast<size_t>(place.ranks[s]);
        bytes_[rank] += copies ? current.bytes * current.split.shards() : current.bytes;
        if (!pricer_.Used(t)) continue;
        const Parts& parts = s == 0 ? current.first : current.other;
        for (size_t c = 0; c < kParts; ++c) loads_[rank][c] += parts[c];
      }
      received_ += current.received;
      return;
    }
    for (size_t i = 0; i < place.ranks.size(); i += static_cast<size_t>(current.span)) {
      open.places.push_back(place.ranks[i] / current.span);
    }
    for (size_t i = 0; i < open.places.size(); ++i) Put(current, i, open.places[i], 1.0);
    received_ += current.received;
    open_.push_back(std::move(open));
  }

  // How hot each table is, and for the hot ones what else they may be.
  void SetHeat() {
    Parts mean{};
    for (const Parts& load : loads_) {
      for (size_t c = 0; c < kParts; ++c) mean[c] += load[c] / devices_;
    }
    for (OpenTable& open : open_) {
      const Option now = open.options[0];  // a copy: options grow below
      for (size_t c = 0; c < kParts; ++c) {
        if (mean[c] > 0) open.heat = std::max(open.heat, now.other[c] * now.pieces / mean[c]);
      }
      const bool split = now.pieces > 1 || now.on_nodes;
      const bool many = open_.size() > kManyTables;
      if (many && open.heat < kHotShare && !split) continue;
      const double most = many ? std::max(2.0, kMostPieces * open.heat) : std::max(kFewPieces, kMostPieces * open.heat);
      const TablePlacement place{now.split.sharding, now.split.row_shards, now.split.column_shards, {}};
      for (const TableSplit& other :
           SplitOptions(pricer_.model(), pricer_.recipe(), pricer_.cluster(), open.table, place)) {
        if (!(other < now.split) && !(now.split < other)) continue;
        const bool of_nodes = other.sharding == Sharding::kTableRow;
        if (splits_ == (of_nodes ? SearchSplits::kFlat : SearchSplits::kNodes)) continue;
        if (!of_nodes && other.shards() > most) continue;
        open.options.push_back(MakeOption(open.table, other));
      }
    }
    std::stable_sort(open_.begin(), open_.end(),
                     [](const OpenTable& a, const OpenTable& b) { return a.heat > b.heat; });
  }

  ShardPricer& pricer_;
  const PlacementWeights weights_;
  const SearchSplits splits_;
  const int per_node_;
  double byte_weight_ = 0;
};

}  // namespace

std::vector<Placement> ImprovePlacement(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights,
                                        Bytes memory_per_device, SearchStarts starts, SearchSplits splits) {
  std::vector<Placement> found;
  const auto keep = [&](const Search& search) {
    found.push_back(start);
    search.Write(found.back());
    SumRankLoads(pricer.model(), pricer.recipe(), &found.back());
  };
  if (starts == SearchStarts::kDealt) {
    for (uint32_t seed = 1; seed <= kChains; ++seed) {
      Search search(pricer, start, weights, memory_per_device, splits);
      search.Redeal();
      search.Repack(kChainTurns, seed);
      keep(search);
    }
    return found;
  }
  Search here(pricer, start, weights, memory_per_device, splits);
  here.Run();
  if (starts != SearchStarts::kAfresh) here.Repack(kTurns, 1);
  keep(here);
  if (starts == SearchStarts::kHere || !here.MaySplit()) return found;
  std::vector<Family> families = {Family::kAny};
  if (starts == SearchStarts::kAllFamilies && splits != SearchSplits::kNodes) {
    families = {Family::kAny, Family::kRows, Family::kColumns, Family::kNodes};
  }
  for (const Family family : families) {
    if (family == Family::kNodes && (pricer.cluster().nodes() == 1 || splits == SearchSplits::kFlat)) continue;
    for (const double share : kStartShares) {
      Search search(pricer, start, weights, memory_per_device, splits);
      search.Restart(share, family);
      search.Run();
      keep(search);
    }
  }
  return found;
}

}  // namespace portolan
