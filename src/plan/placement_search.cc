#include "plan/placement_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "plan/host_tables.h"

namespace portolan {
namespace {

constexpr int kSplitCounts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
constexpr int64_t kLeastColumns = 16;  // a narrower fp32 row is less than a memory line

constexpr int kParts = 5;  // forward, sort, update, sent, reduced
using Parts = std::array<double, kParts>;
constexpr size_t kSent = 3;

constexpr int kPasses = 6;
// A table may be split when its whole shard has at least this share of a rank's mean load in some part.
constexpr size_t kManyTables = 100;  // above it only hot tables are split
constexpr double kHotShare = 0.15;
constexpr double kMostPieces = 10;  // of a table with the load of one rank
// Tables of this share of a rank's load start in parts below it when a search starts afresh.
constexpr double kStartShare = 0.5;
constexpr double kLeastGain = 1e-7;
constexpr double kCancellation = 1e3;

template <int kSquarings>
double Power(double x) {  // x^(24 x 2^kSquarings)
  const double x8 = (x * x) * (x * x) * (x * x) * (x * x);
  double power = x8 * x8 * x8;
  for (int i = 0; i < kSquarings; ++i) power *= power;
  return power;
}

// One way to split a table: per-rank costs of its first and its other pieces. A piece is a shard on one device or,
// split inside nodes, a node's shards.
struct Option {
  TableSplit split;
  int pieces = 1;
  bool on_nodes = false;
  Parts first{}, other{};  // weighted seconds of one rank
  double received = 0;     // weighted seconds of every rank
  double bytes = 0;        // of one rank
};

struct OpenTable {
  size_t table = 0;
  std::vector<Option> options;
  size_t chosen = 0;
  std::vector<int> places;  // device or node of each piece
  double heat = 0;          // largest share of a rank's mean load
};

class Search {
 public:
  Search(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights, Bytes memory)
      : pricer_(pricer),
        weights_(weights),
        devices_(pricer.cluster().devices),
        per_node_(std::min(devices_, pricer.cluster().devices_per_node)),
        memory_(memory.value),
        loads_(static_cast<size_t>(devices_)),
        powers_(static_cast<size_t>(devices_)),
        bytes_(static_cast<size_t>(devices_), 0.0) {
    for (const RankLoad& rank : start.ranks) {
      memory_ = std::max(memory_, rank.table_bytes + rank.state_bytes);
    }
    for (size_t t = 0; t < start.tables.size(); ++t) Take(t, start.tables[t]);
    SetHeat();
  }

  // Deals all open tables afresh, hottest first: whole, or those of more than kStartShare of a rank's load in parts of
  // `family`.
  void Restart(Sharding family) {
    for (OpenTable& open : open_) {
      const Option& option = open.options[open.chosen];
      for (size_t i = 0; i < open.places.size(); ++i) Put(option, i, open.places[i], -1.0);
      received_ -= option.received;
    }
    for (OpenTable& open : open_) {
      size_t best = open.chosen;
      double best_rank = -1;
      for (size_t o = 0; o < open.options.size(); ++o) {
        const Option& option = open.options[o];
        if (option.on_nodes || (option.pieces > 1 && open.options.size() == 1)) continue;
        const bool enough = open.heat <= kStartShare * option.pieces;
        const bool asked = option.pieces == 1 || option.split.sharding == family;
        // Enough parts of the family asked, as few as possible; else the most parts.
        const double rank = (enough && asked ? 2e6 - option.pieces : enough ? 1e6 - option.pieces : option.pieces);
        if (rank <= best_rank) continue;
        best = o;
        best_rank = rank;
      }
      open.chosen = best;
      Normalise<0>();
      Objective<0>();
      const Option& option = open.options[best];
      std::vector<int> places;
      if (Deal<0>(option, places)) {
        open.places = places;
      } else {
        open.places.clear();
        for (int i = 0; i < option.pieces; ++i) {
          open.places.push_back(i);
          Put(option, static_cast<size_t>(i), i, 1.0);
        }
      }
      received_ += option.received;
    }
  }

  void Run() {
    if (open_.empty()) return;
    Descend<0>();
    Descend<3>();
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
        for (int d = 0; d < Span(option); ++d) place.ranks.push_back(at * Span(option) + d);
      }
    }
  }

 private:
  int Span(const Option& option) const { return option.on_nodes ? per_node_ : 1; }

  Parts Weighted(const ShardCost& cost, double factor) const {
    return {weights_.forward * factor * cost.forward.total.value, weights_.sort * factor * cost.sort.total.value,
            weights_.update * factor * cost.update.total.value,
            weights_.exchanged_element * factor * cost.sent_elements, weights_.reduced_element * cost.reduced_elements};
  }

  Option MakeOption(size_t t, const TableSplit& split) {
    const ShardCost& cost = pricer_.Price(t, split);
    const Table& table = pricer_.model().tables[t];
    const Recipe& recipe = pricer_.recipe();
    const EmbeddingOptimizer optimizer = recipe.embedding_optimizer.value_or(pricer_.model().embedding_optimizer);
    Option option;
    option.split = split;
    option.on_nodes = split.sharding == Sharding::kTableRow && split.row_shards % per_node_ == 0;
    option.pieces = option.on_nodes ? split.row_shards / per_node_ : split.shards();
    option.first = Weighted(cost, cost.first_factor);
    option.other = Weighted(cost, cost.other_factor);
    option.received = weights_.exchanged_element * cost.received_elements;
    option.bytes = DeviceRows(pricer_.model(), recipe, t) *
                   (static_cast<double>(table.dim) * SizeOf(recipe.embedding_row).value +
                    EmbeddingStateBytesPerRow(optimizer, table.dim).value) /
                   split.shards();
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
    for (size_t i = 0; i < place.ranks.size(); i += static_cast<size_t>(Span(current))) {
      open.places.push_back(place.ranks[i] / Span(current));
    }
    for (size_t i = 0; i < open.places.size(); ++i) Put(current, i, open.places[i], 1.0);
    received_ += current.received;
    open_.push_back(std::move(open));
  }

  // Adds or takes away one piece, without the powers.
  void Put(const Option& option, size_t piece, int at, double sign) {
    for (int d = 0; d < Span(option); ++d) {
      const size_t rank = static_cast<size_t>(at * Span(option) + d);
      const Parts& parts = piece == 0 && d == 0 ? option.first : option.other;
      for (size_t c = 0; c < kParts; ++c) loads_[rank][c] += sign * parts[c];
      bytes_[rank] += sign * option.bytes;
    }
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
      const double most = many ? std::max(2.0, kMostPieces * open.heat) : devices_;
      const TablePlacement place{now.split.sharding, now.split.row_shards, now.split.column_shards, {}};
      for (const TableSplit& other :
           SplitOptions(pricer_.model(), pricer_.recipe(), pricer_.cluster(), open.table, place)) {
        if (!(other < now.split) && !(now.split < other)) continue;
        if (other.sharding != Sharding::kTableRow && other.shards() > most) continue;
        open.options.push_back(MakeOption(open.table, other));
      }
    }
    std::stable_sort(open_.begin(), open_.end(),
                     [](const OpenTable& a, const OpenTable& b) { return a.heat > b.heat; });
  }

  template <int kSquarings>
  void Normalise() {
    scale_.fill(0);
    for (const Parts& load : loads_) {
      for (size_t c = 0; c < kParts; ++c) scale_[c] = std::max(scale_[c], load[c]);
    }
    scale_[kSent] = std::max(scale_[kSent], received_);
    for (double& scale : scale_) scale = scale > 0 ? 1 / scale : 0;
    sums_.fill(0);
    std::fill(powers_.begin(), powers_.end(), Parts{});
    for (size_t r = 0; r < loads_.size(); ++r) RankPowers<kSquarings>(r);
  }
  // Brings one rank's powers, and the sums, up to date.
  template <int kSquarings>
  void RankPowers(size_t rank) {
    for (size_t c = 0; c < kParts; ++c) {
      const double power = Power<kSquarings>(std::max(0.0, loads_[rank][c]) * scale_[c]);
      sums_[c] += power - powers_[rank][c];
      // A sum that lost nearly all of itself holds only rounding errors.
      stale_ |= powers_[rank][c] > kCancellation * sums_[c];
      powers_[rank][c] = power;
    }
  }
  template <int kSquarings>
  void Refresh(const Option& option, int at) {
    for (int d = 0; d < Span(option); ++d) RankPowers<kSquarings>(static_cast<size_t>(at * Span(option) + d));
  }

  // The smooth objective, and how it grows with each sum of powers.
  template <int kSquarings>
  double Objective() {
    constexpr double kExponent = 24.0 * (1 << kSquarings);
    if (stale_) {
      sums_.fill(0);
      for (const Parts& power : powers_) {
        for (size_t c = 0; c < kParts; ++c) sums_[c] += power[c];
      }
      stale_ = false;
    }
    double total = 0;
    for (size_t c = 0; c < kParts; ++c) {
      if (scale_[c] <= 0) continue;
      const double sum = std::max(0.0, sums_[c]) + (c == kSent ? Power<kSquarings>(received_ * scale_[c]) : 0.0);
      const double norm = std::pow(sum, 1 / kExponent) / scale_[c];
      slope_[c] = sum > 0 ? norm / sum : 0;
      total += norm;
    }
    return total;
  }

  // What a piece would add to the objective at a place, to first order in the sums of powers.
  template <int kSquarings>
  double Score(const Option& option, size_t piece, int at) const {
    double score = 0;
    for (int d = 0; d < Span(option); ++d) {
      const size_t rank = static_cast<size_t>(at * Span(option) + d);
      const Parts& parts = piece == 0 && d == 0 ? option.first : option.other;
      for (size_t c = 0; c < kParts; ++c) {
        if (parts[c] <= 0) continue;
        score += slope_[c] * (Power<kSquarings>((loads_[rank][c] + parts[c]) * scale_[c]) - powers_[rank][c]);
      }
    }
    return score;
  }

  // Places the pieces of an option one after the other where each adds least; false when memory forbids it.
  template <int kSquarings>
  bool Deal(const Option& option, std::vector<int>& places) {
    places.clear();
    const int bins = devices_ / Span(option);
    for (int piece = 0; piece < option.pieces; ++piece) {
      int best = -1;
      double best_score = 0;
      for (int at = 0; at < bins; ++at) {
        if (bytes_[static_cast<size_t>(at * Span(option))] + option.bytes > memory_) continue;
        if (std::find(places.begin(), places.end(), at) != places.end()) continue;
        const double score = Score<kSquarings>(option, static_cast<size_t>(piece), at);
        if (best >= 0 && score >= best_score) continue;
        best = at;
        best_score = score;
      }
      if (best < 0) {
        for (size_t i = 0; i < places.size(); ++i) Lift<kSquarings>(option, i, places[i]);
        return false;
      }
      Put(option, static_cast<size_t>(piece), best, 1.0);
      Refresh<kSquarings>(option, best);
      places.push_back(best);
    }
    return true;
  }
  template <int kSquarings>
  void Lift(const Option& option, size_t piece, int at) {
    Put(option, piece, at, -1.0);
    Refresh<kSquarings>(option, at);
  }

  // The best split and places of one table, the others as they are.
  template <int kSquarings>
  bool Replace(OpenTable& open) {
    const double before = Objective<kSquarings>();
    const size_t old_choice = open.chosen;
    const std::vector<int> old_places = open.places;
    const auto lift_all = [&](const Option& option, const std::vector<int>& places) {
      for (size_t i = 0; i < places.size(); ++i) Lift<kSquarings>(option, i, places[i]);
      received_ -= option.received;
    };
    const auto put_all = [&](const Option& option, const std::vector<int>& places) {
      for (size_t i = 0; i < places.size(); ++i) {
        Put(option, i, places[i], 1.0);
        Refresh<kSquarings>(option, places[i]);
      }
      received_ += option.received;
    };
    lift_all(open.options[old_choice], old_places);
    double best = before * (1 - kLeastGain);
    bool improved = false;
    std::vector<int> places;
    for (size_t o = 0; o < open.options.size(); ++o) {
      const Option& option = open.options[o];
      if (option.pieces * Span(option) > devices_) continue;
      Objective<kSquarings>();  // slopes without this table
      if (!Deal<kSquarings>(option, places)) continue;
      received_ += option.received;
      const double now = Objective<kSquarings>();
      lift_all(option, places);
      if (now >= best) continue;
      best = now;
      improved = true;
      open.chosen = o;
      open.places = places;
    }
    put_all(open.options[open.chosen], open.places);
    return improved;
  }

  // Swaps one piece of the rank that leads in part `part` with a piece of another rank.
  template <int kSquarings>
  bool SwapFromFullest(size_t part) {
    size_t fullest = 0;
    for (size_t r = 0; r < loads_.size(); ++r) {
      if (loads_[r][part] > loads_[fullest][part]) fullest = r;
    }
    double before = Objective<kSquarings>();
    bool improved = false;
    for (OpenTable& a : open_) {
      const Option& from = a.options[a.chosen];
      for (size_t i = 0; i < a.places.size(); ++i) {
        if (from.on_nodes || a.places[i] != static_cast<int>(fullest)) continue;
        for (OpenTable& b : open_) {
          const Option& to = b.options[b.chosen];
          if (&a == &b || to.on_nodes) continue;
          if (std::find(b.places.begin(), b.places.end(), a.places[i]) != b.places.end()) continue;
          for (size_t j = 0; j < b.places.size(); ++j) {
            const int there = b.places[j];
            if (std::find(a.places.begin(), a.places.end(), there) != a.places.end()) continue;
            if (SwapScore<kSquarings>(from, i, a.places[i], to, j, there) >= 0) continue;
            if (bytes_[static_cast<size_t>(there)] + from.bytes - to.bytes > memory_) continue;
            if (bytes_[fullest] + to.bytes - from.bytes > memory_) continue;
            Exchange<kSquarings>(a, i, b, j);
            const double now = Objective<kSquarings>();
            if (now < before * (1 - kLeastGain)) {
              before = now;
              improved = true;
              break;
            }
            Exchange<kSquarings>(a, i, b, j);
            Objective<kSquarings>();
          }
          if (a.places[i] != static_cast<int>(fullest)) break;
        }
      }
    }
    return improved;
  }
  template <int kSquarings>
  double SwapScore(const Option& from, size_t i, int here, const Option& to, size_t j, int there) const {
    const Parts& out = i == 0 ? from.first : from.other;
    const Parts& in = j == 0 ? to.first : to.other;
    const size_t a = static_cast<size_t>(here), b = static_cast<size_t>(there);
    double score = 0;
    for (size_t c = 0; c < kParts; ++c) {
      const double moved = out[c] - in[c];
      if (moved == 0) continue;
      score += slope_[c] * (Power<kSquarings>(std::max(0.0, loads_[a][c] - moved) * scale_[c]) - powers_[a][c] +
                            Power<kSquarings>(std::max(0.0, loads_[b][c] + moved) * scale_[c]) - powers_[b][c]);
    }
    return score;
  }
  template <int kSquarings>
  void Exchange(OpenTable& a, size_t i, OpenTable& b, size_t j) {
    const Option& from = a.options[a.chosen];
    const Option& to = b.options[b.chosen];
    Put(from, i, a.places[i], -1.0);
    Put(to, j, b.places[j], -1.0);
    std::swap(a.places[i], b.places[j]);
    Put(from, i, a.places[i], 1.0);
    Put(to, j, b.places[j], 1.0);
    Refresh<kSquarings>(from, a.places[i]);
    Refresh<kSquarings>(to, b.places[j]);
  }

  template <int kSquarings>
  void Descend() {
    for (int pass = 0; pass < kPasses; ++pass) {
      Normalise<kSquarings>();
      bool improved = false;
      for (OpenTable& open : open_) improved |= Replace<kSquarings>(open);
      for (size_t part = 0; part < kParts; ++part) {
        if (scale_[part] > 0) improved |= SwapFromFullest<kSquarings>(part);
      }
      if (!improved) break;
    }
  }

  ShardPricer& pricer_;
  const PlacementWeights weights_;
  const int devices_, per_node_;
  double memory_;
  std::vector<Parts> loads_, powers_;
  std::vector<double> bytes_;
  Parts scale_{}, sums_{}, slope_{};
  double received_ = 0;
  bool stale_ = false;  // sums_
  std::vector<OpenTable> open_;
};

}  // namespace

std::vector<TableSplit> SplitOptions(const Model& model, const Recipe& recipe, const Cluster& cluster, size_t table,
                                     const TablePlacement& place) {
  const Table& shape = model.tables[table];
  const bool named = recipe.tables.count(shape.name) > 0;
  const Sharding asked = named ? recipe.tables.at(shape.name).sharding : recipe.sharding;
  if (place.sharding == Sharding::kDataParallel || asked != Sharding::kAuto || cluster.devices == 1) {
    return {SplitOf(place)};
  }
  std::vector<TableSplit> options;
  for (const int count : kSplitCounts) {
    if (count > cluster.devices) break;
    if (count == 1) {
      options.push_back({Sharding::kTable, 1, 1});
      continue;
    }
    if (count <= shape.rows) options.push_back({Sharding::kRow, count, 1});
    if (shape.dim % count == 0 && shape.dim / count >= kLeastColumns) options.push_back({Sharding::kColumn, 1, count});
  }
  const int per_node = std::min(cluster.devices, cluster.devices_per_node);
  for (int nodes = 1; cluster.nodes() > 1 && per_node > 1 && nodes <= cluster.nodes(); nodes *= 2) {
    options.push_back({Sharding::kTableRow, nodes * per_node, 1});
  }
  return options;
}

std::vector<Placement> ImprovePlacement(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights,
                                        Bytes memory_per_device, SearchStarts starts) {
  std::vector<Placement> found;
  const auto keep = [&](const Search& search) {
    found.push_back(start);
    search.Write(found.back());
    SumRankLoads(pricer.model(), pricer.recipe(), &found.back());
  };
  Search here(pricer, start, weights, memory_per_device);
  here.Run();
  keep(here);
  if (starts == SearchStarts::kHere || !here.MaySplit()) return found;
  for (const Sharding family : {Sharding::kColumn, Sharding::kRow}) {
    Search search(pricer, start, weights, memory_per_device);
    search.Restart(family);
    search.Run();
    keep(search);
  }
  return found;
}

}  // namespace portolan
