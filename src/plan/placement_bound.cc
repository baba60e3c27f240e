#include "plan/placement_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/placement_dual_bound.h"

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

constexpr size_t kParts = kKernelParts;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Option = BoundOption;
using Options = std::vector<std::vector<BoundOption>>;  // by table

class Bound {
 public:
  Bound(const Model& model, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants)
      : pricer_(model, recipe, cluster, constants), devices_(pricer_.cluster().devices) {
    const Placement greedy = PlaceTables(model, pricer_.recipe(), pricer_.cluster(), pricer_.FreeForTables());
    fixed_ = pricer_.Measure(greedy);
    // Copies are averaged on all devices at once: at least a device's mean share of the tables, however they are dealt.
    const EmbeddingWork mean = MeasureEmbeddings(pricer_.shards(), greedy, RankBalance::kMean);
    fixed_.sync_row_bytes = mean.sync_row_bytes;
    fixed_.sync_state_bytes = mean.sync_state_bytes;
    fixed_.host_row_bytes = mean.host_row_bytes;  // shards miss alike: the mean is that of any placement
    fixed_.host_find = {};
    problem_ = MakeBoundProblem(pricer_, greedy);
  }

  Seconds Find() {
    if (problem_.tables.empty()) return pricer_.StepOf(fixed_);
    const Seconds dual = PlacementDualBound(pricer_, problem_, fixed_).bound;
    for (const auto& options : problem_.tables) {
      for (const Option& option : options) any_on_nodes_ |= option.on_nodes;
    }
    const std::vector<size_t> parts = FreeParts();
    Seconds best(kInfinity);
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      const double upper = i + 1 < std::size(kLevels) ? kLevels[i + 1] : kInfinity;
      Options allowed;
      if (!Allowed(upper, parts, &allowed)) continue;
      for (const size_t part : parts) best = std::min(best, Level(allowed, kLevels[i], part, best));
      if (parts.empty()) return std::max(dual, Level(allowed, 1, kParts, best));
    }
    return std::max(dual, best);
  }

 private:
  struct Sums {
    KernelParts parts{};
    double received = 0, sent = 0, reduced = 0;
  };

  // The mean bounds, and the parts that lengthen the step when they grow.
  std::vector<size_t> FreeParts() {
    const Sums sums = Relaxed(problem_.tables, kInfinity);
    floor_ = sums.parts;
    std::vector<size_t> parts;
    const double step = Price(problem_.tables, floor_, sums.received, sums.sent, sums.reduced).value;
    for (size_t c = 0; c < kParts; ++c) {
      KernelParts more = floor_;
      more[c] *= 1.5;
      if (floor_[c] > 0 && Price(problem_.tables, more, sums.received, sums.sent, sums.reduced).value > step * 1.001) {
        parts.push_back(c);
      }
    }
    return parts;
  }

  bool Allowed(double level, const std::vector<size_t>& parts, Options* allowed) const {
    for (const auto& options : problem_.tables) {
      std::vector<Option> kept;
      for (const Option& option : options) {
        const bool under = std::all_of(parts.begin(), parts.end(), [&](size_t c) {
          return problem_.base_least[c] + option.shard[c] * option.largest() <= level * floor_[c] * (1 + 1e-12);
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
    KernelParts scale = problem_.base_mean;
    for (const auto& options : tables) {
      double received = kInfinity, sent = kInfinity, reduced = kInfinity;
      for (const Option& o : options) {
        received = std::min(received, o.received);
        sent = std::min(sent, o.sent_mean());
        reduced = std::min(reduced, o.reduced_mean());
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
        double total = problem_.base_mean[c] - (m > 0 ? m * received_limit : 0.0);
        for (const auto& options : tables) {
          double least = kInfinity;
          for (const Option& o : options) least = std::min(least, o.mean[c] + m * o.received);
          total += least;
        }
        sums.parts[c] = std::max(sums.parts[c], total);
      }
      sums.parts[c] =
          std::max(sums.parts[c],
                   problem_.base_least[c] + Crowd(tables, [c](const Option& o) { return o.shard[c] * o.largest(); }));
    }
    sums.sent = std::max(sums.sent, Crowd(tables, [](const Option& o) { return o.sent * o.largest(); }));
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
          least_reduced = std::min(least_reduced, o.reduced_mean());
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

  Seconds Price(const Options& allowed, const KernelParts& parts, double received, double sent, double reduced) const {
    const double exchanged = std::max(received, sent);
    return pricer_.StepOf(WorkOfParts(pricer_, fixed_, allowed, parts, exchanged, reduced));
  }

  StepPricer pricer_;
  const int devices_;
  EmbeddingWork fixed_;  // of the greedy placement: what does not depend on it is taken from here
  BoundProblem problem_;
  KernelParts floor_{};
  bool any_on_nodes_ = false;
};

}  // namespace

Seconds PlacementBound(const Model& model, const Recipe& recipe, const Cluster& cluster,
                       const StepConstants& constants) {
  return Bound(model, recipe, cluster, constants).Find();
}

}  // namespace portolan
