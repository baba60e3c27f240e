#include "plan/placement_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/step_pricer.h"

namespace portolan {
namespace {

// The bound, and why it holds for every placement P that gives each table t one of its splits o(t) (SplitOptions) and
// its shards any ranks.
//
// The step T is priced from the largest forward F, sort S and update U over the ranks, from the exchange X =
// max(largest sent, received) and from the node reduction N (MeasureEmbeddings), and no task that grows makes it
// shorter. So T(P) >= T(v) for every vector v that is in no part above P's. With k_t shards of cost c(t, o) on D ranks:
//   mean     a largest sum is at least the mean sum:  F >= base + sum_t k F(t, o(t)) / D; S, U, N, sent alike;
//            `received` is the same sum on every rank and known exactly.
//   largest  some rank holds the largest shard of t:  F >= base + F1(t, o(t)).
//   crowd    m D + 1 shards on D ranks put m + 1 on one:  F >= base + the sum of the m + 1 smallest of the m D + 1
//            largest among one shard a table.
// Which splits P uses is not known, so all its possible (F, S, U, X) are covered by cells. Cell (i, k, c): the largest
// of F/F0, S/S0, U/U0 (F0 ... the mean bounds over all splits; only parts that lengthen the step take part) lies in
// [level_i, level_i+1) and is that of part c; X lies in [x_k, x_k+1). In the cell a table has only splits whose largest
// shard stays under level_i+1 in every part, and the sum of what is received is under x_k+1. Relaxing that one sum with
// a multiplier m >= 0 (Lagrange), every part satisfies
//   sum_t k F(t, o(t)) >= max over m of [sum_t min_o (k F + m R) - m x_k+1],
// since the terms that were added sum to at most 0 in the cell. T at the largest of these bounds and of the cell's own
// corner is at most T of all placements in the cell, and the least cell bounds them all. On several nodes X and N are
// bounded together: a share a of the tables' outputs is exchanged flat, the rest over nodes (a = cells again).
constexpr double kLevels[] = {1,    1.005, 1.01, 1.015, 1.02, 1.03, 1.04, 1.06, 1.08, 1.1,
                              1.13, 1.16,  1.2,  1.25,  1.3,  1.4,  1.6,  2,    3,    6};
constexpr double kMultipliers[] = {0, 0.03, 0.1, 0.3, 1, 3, 10};
constexpr int kNodeShares = 64;

constexpr size_t kParts = 3;  // forward, sort, update
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Option {
  std::array<double, kParts> mean{}, largest{}, launch{};  // seconds: over all ranks; of the largest shard; fixed
  double received = 0, sent_mean = 0, sent_largest = 0, unpooled_mean = 0, reduced_mean = 0, tables_mean = 0;
  bool on_nodes = false;

  bool Dominates(const Option& other) const {
    for (size_t c = 0; c < kParts; ++c) {
      if (mean[c] > other.mean[c] || largest[c] > other.largest[c] || launch[c] > other.launch[c]) return false;
    }
    return on_nodes == other.on_nodes && received <= other.received && sent_mean <= other.sent_mean &&
           sent_largest <= other.sent_largest && unpooled_mean <= other.unpooled_mean &&
           reduced_mean <= other.reduced_mean && tables_mean <= other.tables_mean;
  }
};

using Options = std::vector<std::vector<Option>>;  // by table

class Bound {
 public:
  Bound(const Model& model, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants)
      : pricer_(model, recipe, cluster, constants), devices_(cluster.devices) {
    const Placement greedy = PlaceTables(model, pricer_.recipe(), cluster, pricer_.FreeForTables());
    fixed_ = pricer_.Measure(greedy);
    for (size_t t = 0; t < model.tables.size(); ++t) AddTable(t, greedy.tables[t]);
  }

  Seconds Find() {
    if (tables_.empty()) return pricer_.StepOf(fixed_);
    for (const auto& options : tables_) {
      for (const Option& option : options) any_on_nodes_ |= option.on_nodes;
    }
    const std::vector<size_t> parts = FreeParts();
    Seconds best(kInfinity);
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      const double upper = i + 1 < std::size(kLevels) ? kLevels[i + 1] : kInfinity;
      Options allowed;
      if (!Allowed(upper, parts, &allowed)) continue;
      for (const size_t part : parts) best = std::min(best, Level(allowed, kLevels[i], part, best));
      if (parts.empty()) return Level(allowed, 1, kParts, best);
    }
    return best;
  }

 private:
  struct Sums {
    std::array<double, kParts> parts{};
    double received = 0, sent = 0, reduced = 0;
  };

  void AddTable(size_t t, const TablePlacement& place) {
    if (!pricer_.shards().Used(t)) return;
    // Copies of the hottest rows are every rank's, however the rest is dealt.
    const TableWork whole = pricer_.shards().WorkOf(t, SplitOf(place));
    base_[0] += whole.hot_forward.total.value;
    base_[2] += whole.hot_update.total.value;
    std::vector<Option> options;
    for (const TableSplit& split : SplitOptions(pricer_.model(), pricer_.recipe(), pricer_.cluster(), t, place)) {
      const ShardCost& cost = pricer_.shards().Price(t, split);
      const bool everywhere = place.ranks.empty();
      const double shards = everywhere ? devices_ : split.shards();
      const double largest = std::max(cost.first_factor, cost.other_factor);
      Option option;
      const std::array<const Estimate*, kParts> kernels = {&cost.forward, &cost.sort, &cost.update};
      for (size_t c = 0; c < kParts; ++c) {
        option.mean[c] = kernels[c]->total.value * shards / devices_;
        option.largest[c] = kernels[c]->total.value * largest;
        option.launch[c] = kernels[c]->launch.value;
      }
      option.received = cost.received_elements;
      option.sent_mean = cost.sent_elements * shards / devices_;
      option.sent_largest = cost.sent_elements * largest;
      option.unpooled_mean = cost.unpooled_elements * shards / devices_;
      option.reduced_mean = cost.reduced_elements * shards / devices_;
      option.tables_mean = shards / devices_;
      option.on_nodes = cost.reduced_elements > 0;
      if (everywhere) {
        for (size_t c = 0; c < kParts; ++c) {
          base_[c] += option.mean[c];
          option.mean[c] = 0;
          option.largest[c] = 0;
        }
      }
      options.push_back(option);
    }
    std::vector<Option> kept;
    for (size_t i = 0; i < options.size(); ++i) {
      bool dominated = false;
      for (size_t j = 0; j < options.size() && !dominated; ++j) {
        dominated = i != j && options[j].Dominates(options[i]) && (!options[i].Dominates(options[j]) || j < i);
      }
      if (!dominated) kept.push_back(options[i]);
    }
    tables_.push_back(std::move(kept));
  }

  // The mean bounds, and the parts that lengthen the step when they grow.
  std::vector<size_t> FreeParts() {
    const Sums sums = Relaxed(tables_, kInfinity);
    floor_ = sums.parts;
    std::vector<size_t> parts;
    const double step = Price(tables_, floor_, sums.received, sums.sent, sums.reduced).value;
    for (size_t c = 0; c < kParts; ++c) {
      std::array<double, kParts> more = floor_;
      more[c] *= 1.5;
      if (floor_[c] > 0 && Price(tables_, more, sums.received, sums.sent, sums.reduced).value > step * 1.001) {
        parts.push_back(c);
      }
    }
    return parts;
  }

  bool Allowed(double level, const std::vector<size_t>& parts, Options* allowed) const {
    for (const auto& options : tables_) {
      std::vector<Option> kept;
      for (const Option& option : options) {
        const bool under = std::all_of(parts.begin(), parts.end(), [&](size_t c) {
          return base_[c] + option.largest[c] <= level * floor_[c] * (1 + 1e-12);
        });
        if (under) kept.push_back(option);
      }
      if (kept.empty()) return false;
      allowed->push_back(std::move(kept));
    }
    return true;
  }

  // Bounds on the sums over tables when no more than `received_limit` elements are received.
  Sums Relaxed(const Options& tables, double received_limit) const {
    Sums sums;
    std::array<double, kParts> scale = base_;
    for (const auto& options : tables) {
      double received = kInfinity, sent = kInfinity, reduced = kInfinity;
      for (const Option& o : options) {
        received = std::min(received, o.received);
        sent = std::min(sent, o.sent_mean);
        reduced = std::min(reduced, o.reduced_mean);
      }
      sums.received += received;
      sums.sent += sent;
      sums.reduced += reduced;
      for (size_t c = 0; c < kParts; ++c) scale[c] += options.front().mean[c];
    }
    for (size_t c = 0; c < kParts; ++c) {
      const double unit = sums.received > 0 ? scale[c] / sums.received : 0;
      for (const double multiplier : kMultipliers) {
        if (multiplier > 0 && !std::isfinite(received_limit)) break;
        const double m = multiplier * unit;
        double total = base_[c] - (m > 0 ? m * received_limit : 0.0);
        for (const auto& options : tables) {
          double least = kInfinity;
          for (const Option& o : options) least = std::min(least, o.mean[c] + m * o.received);
          total += least;
        }
        sums.parts[c] = std::max(sums.parts[c], total);
      }
      sums.parts[c] = std::max(sums.parts[c], base_[c] + Crowd(tables, [c](const Option& o) { return o.largest[c]; }));
    }
    sums.sent = std::max(sums.sent, Crowd(tables, [](const Option& o) { return o.sent_largest; }));
    return sums;
  }

  // The largest sum on one rank of one shard a table, at least.
  template <typename Value>
  double Crowd(const Options& tables, const Value& value) const {
    std::vector<double> shards;
    for (const auto& options : tables) {
      double least = kInfinity;
      for (const Option& o : options) least = std::min(least, value(o));
      shards.push_back(least);
    }
    std::sort(shards.rbegin(), shards.rend());
    double crowd = 0;
    const size_t devices = static_cast<size_t>(devices_);
    for (size_t m = 0; m * devices < shards.size(); ++m) {
      double sum = 0;
      for (size_t i = m * devices - m; i <= m * devices; ++i) sum += shards[i];
      crowd = std::max(crowd, sum);
    }
    return crowd;
  }

  // The least step of the cells of one level and part.
  Seconds Level(const Options& allowed, double level, size_t part, Seconds best) const {
    const Sums all = Relaxed(allowed, kInfinity);
    for (size_t k = 0; k < std::size(kLevels); ++k) {
      const bool last = k + 1 == std::size(kLevels);
      Sums sums = all;
      double exchanged = std::max(all.received, all.sent) * kLevels[k];
      if (any_on_nodes_) {
        exchanged = 0;
      } else if (!last) {
        sums = Relaxed(allowed, std::max(all.received, all.sent) * kLevels[k + 1]);
      }
      if (part < kParts) sums.parts[part] = std::max(sums.parts[part], level * floor_[part]);
      if (!any_on_nodes_) {
        const Seconds step = Price(allowed, sums.parts, exchanged, exchanged, all.reduced);
        if (k == 0 && step >= best) return best;  // the step grows with k
        best = std::min(best, step);
        if (last || kLevels[k] * all.received <= 0) break;
        continue;
      }
      return std::min(best, NodeShares(allowed, sums));
    }
    return best;
  }

  // Each table's outputs are exchanged flat or reduced in nodes. With at most x elements received beyond what even node
  // splits receive, no less is reduced than when the tables that save most reduction an element are the flat ones, the
  // last of them in part (fractional knapsack).
  Seconds NodeShares(const Options& allowed, const Sums& sums) const {
    struct Choice {
      double extra = 0, reduced = 0;
    };
    std::vector<Choice> choices;
    double received = 0, reduced = 0, extra = 0;  // in any case; at choice
    for (const auto& options : allowed) {
      double flat = kInfinity, on_nodes = kInfinity, least_reduced = kInfinity;
      for (const Option& o : options) {
        if (o.on_nodes) {
          on_nodes = std::min(on_nodes, o.received);
          least_reduced = std::min(least_reduced, o.reduced_mean);
        } else {
          flat = std::min(flat, o.received);
        }
      }
      received += std::min(flat, on_nodes);
      if (!std::isfinite(flat)) {
        reduced += least_reduced;
      } else if (std::isfinite(on_nodes)) {
        choices.push_back({std::max(0.0, flat - on_nodes), least_reduced});
        extra += choices.back().extra;
      }
    }
    std::sort(choices.begin(), choices.end(),
              [](const Choice& a, const Choice& b) { return a.reduced * b.extra > b.reduced * a.extra; });
    Seconds best(kInfinity);
    for (int i = 0; i < kNodeShares; ++i) {
      double budget = extra * (i + 1) / kNodeShares;
      double left = reduced;
      for (const Choice& choice : choices) {
        const double share = choice.extra > 0 ? std::min(1.0, budget / choice.extra) : 1.0;
        budget -= share * choice.extra;
        left += (1 - share) * choice.reduced;
      }
      const double exchanged = received + extra * i / kNodeShares;
      best = std::min(best, Price(allowed, sums.parts, exchanged, exchanged, left));
    }
    return best;
  }

  Seconds Price(const Options& allowed, const std::array<double, kParts>& parts, double received, double sent,
                double reduced) const {
    std::array<double, kParts> launch{};
    double tables = 0, unpooled = 0;
    for (const auto& options : allowed) {
      double least_tables = kInfinity, least_unpooled = kInfinity;
      std::array<double, kParts> least = {kInfinity, kInfinity, kInfinity};
      for (const Option& o : options) {
        for (size_t c = 0; c < kParts; ++c) least[c] = std::min(least[c], o.launch[c]);
        least_tables = std::min(least_tables, o.tables_mean);
        least_unpooled = std::min(least_unpooled, o.unpooled_mean);
      }
      for (size_t c = 0; c < kParts; ++c) launch[c] = std::max(launch[c], least[c]);
      tables += least_tables;
      unpooled += least_unpooled;
    }
    const Recipe& recipe = pricer_.recipe();
    EmbeddingWork work = fixed_;
    work.kernels = recipe.table_kernels == TableKernels::kPerTable ? std::max(1.0, tables) : 1.0;
    const std::array<Estimate*, kParts> kernels = {&work.forward, &work.index_sort, &work.backward};
    for (size_t c = 0; c < kParts; ++c) {
      *kernels[c] = {};
      kernels[c]->memory = Seconds(parts[c]);
      kernels[c]->launch = Seconds(work.kernels * launch[c]);
      kernels[c]->total = kernels[c]->memory + kernels[c]->launch;
    }
    const double exchanged = std::max(received, sent);
    work.forward_exchange_bytes = exchanged * SizeOf(recipe.embedding_forward_comm).value;
    work.backward_exchange_bytes = exchanged * SizeOf(recipe.embedding_backward_comm).value;
    work.node_reduce_elements = reduced;
    work.owner_unpooled_elements = unpooled;
    return pricer_.StepOf(work);
  }

  StepPricer pricer_;
  const int devices_;
  EmbeddingWork fixed_;  // of the greedy placement: what does not depend on it is taken from here
  std::array<double, kParts> base_{}, floor_{};
  Options tables_;
  bool any_on_nodes_ = false;
};

}  // namespace

Seconds PlacementBound(const Model& model, const Recipe& recipe, const Cluster& cluster,
                       const StepConstants& constants) {
  return Bound(model, recipe, cluster, constants).Find();
}

}  // namespace portolan
