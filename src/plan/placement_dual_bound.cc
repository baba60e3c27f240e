#include "plan/placement_dual_bound.h"

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

// Why it holds for every placement P that gives each table t one of its splits o(t) and its shards any ranks.
//
// On one compute stream the timeline only waits and adds: the steady step is the largest mean of a cycle of tasks, a
// maximum of linear functions of their durations, hence convex in them and growing. A kernel's duration is linear in
// its seconds v; a collective's is concave in its elements v, so on an interval it lies above its chord. With chords in
// their place the step is convex in v = (forward, sort + update, received x, reduced n) on a box, and at its lower
// corner l the quotients b = (T(l) - T(l - h)) / h are at most any subgradient, so that for v >= l
//   T(P) >= T(v) >= T(l) + b (v - l).
// Boxes in x and n cover what is possible (x = 0, n = 0, then intervals); in each, v is bounded by the means over the
// ranks: x and n are sums over the tables, a largest kernel time is at least the mean one. Minimised table by table
// (the Lagrangian relaxation of all placements at prices b):
//   T(P) >= c + sum_t min_o b k v(t, o) / D.
// Whole shards. Let L be the largest over the ranks of b-weighted work of some parts (of the kernels; of the kernels,
// what is sent and what is reduced). The step holds sum over parts of the largest >= L. Either L lies in [z, z') or
// elsewhere; cells cover all. In a cell no shard is larger than z' less what every rank has, and for any function f
// with sum f(w_i) <= 1 for shares w_i of a rank that add up to at most 1 (dual feasible: f(w) = 1 above 1 - a, 0 below
// a, w between), the shards' f add up to at most D. So for 0 <= m <= 1 and p >= 0
//   T(P) >= c + (1 - m) z + sum_t min_o [m L(t, o) + rest(t, o) + p sum over shards f] - p D,
// and the least cell bounds all.
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDifference = 0.02;
constexpr double kCellRatio = 1.5;  // of received elements
constexpr int kCells = 14;
constexpr double kReducedRatio = 8;  // of reduced elements
constexpr int kReducedCells = 5;
constexpr double kPriceFactors[] = {0, 0.3, 0.5, 0.7, 0.85, 1, 1.15, 1.3, 1.6, 2, 3};
constexpr double kLevelRatio = 1.01;
constexpr int kLevels = 400;
constexpr double kMixes[] = {0, 0.2, 0.4, 0.6, 0.8, 1};
constexpr double kSmallShares[] = {0.5, 0.34, 0.26, 0.2};
constexpr double kShardPrices[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1};  // of the level
constexpr double kRounding = 1e-9;

using Options = std::vector<std::vector<BoundOption>>;

// Seconds of the step a unit of each part.
struct Prices {
  double constant = 0;
  KernelParts kernel{};
  double received = 0, reduced = 0;
};

struct Range {
  double low = 0, high = 0;
};

// One option against a level: see LevelBound.
struct Levelled {
  double mean = 0, first = 0, other = 0, shards = 1, rest = 0;
};

double DualFeasible(double share, double small) {
  return share > 1 - small + kRounding ? 1 : share < small + kRounding ? 0 : share;
}

class DualBound {
 public:
  DualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed)
      : pricer_(pricer), problem_(problem), fixed_(fixed) {
    if (!problem.tables.empty()) devices_ = problem.tables.front().front().devices;
  }

  double Find() {
    double least_positive = kInfinity, least = 0, most = 0;
    for (const auto& options : problem_.tables) {
      double low = kInfinity, high = 0;
      for (const BoundOption& o : options) {
        low = std::min(low, o.received);
        high = std::max(high, o.received);
        if (o.received > 0) least_positive = std::min(least_positive, o.received);
      }
      least += low;
      most += high;
    }
    double best = kInfinity;
    if (least <= 0) best = std::min(best, Box(0, 0, best));
    if (most <= 0) return best;
    double low = std::max(least, least_positive);
    for (int i = kCells; i-- > 0 && low < most;) {
      const double high = i == 0 ? most : std::max(low, most * std::pow(kCellRatio, -i));
      if (high <= low) continue;
      best = std::min(best, Box(low, high, best));
      low = high;
    }
    if (low >= most) best = std::min(best, Box(most, most, best));
    return best;
  }

 private:
  // Received elements in [low, high].
  double Box(double low, double high, double best) {
    Options flat, some;
    bool all_flat = true, any_reduced = false;
    for (const auto& options : problem_.tables) {
      std::vector<BoundOption> allowed, unreduced;
      for (const BoundOption& o : options) {
        if (o.received > high * (1 + kRounding)) continue;
        allowed.push_back(o);
        any_reduced |= o.reduced > 0;
        if (o.reduced <= 0) unreduced.push_back(o);
      }
      if (allowed.empty()) return kInfinity;
      all_flat &= !unreduced.empty();
      flat.push_back(std::move(unreduced));
      some.push_back(std::move(allowed));
    }
    double bound = kInfinity;
    if (all_flat) bound = std::min(bound, Cell(flat, {low, high}, {0, 0}, best));
    if (!any_reduced) return bound;
    double most = 0, least = kInfinity;
    for (const auto& options : some) {
      double largest = 0;
      for (const BoundOption& o : options) {
        largest = std::max(largest, o.reduced_mean());
        if (o.reduced > 0) least = std::min(least, o.reduced_mean());
      }
      most += largest;
    }
    least = std::max(least, LeastReduced(some, high));
    for (int i = kReducedCells; i-- > 0 && least <= most;) {
      const double upper = i == 0 ? most : std::min(most, std::max(least, most * std::pow(kReducedRatio, -i)));
      if (upper <= least && i > 0) continue;
      bound = std::min(bound, Cell(some, {low, high}, {std::min(least, upper), upper}, std::min(best, bound)));
      least = upper;
    }
    return bound;
  }

  double Cell(const Options& tables, const Range& received, const Range& reduced, double best) {
    KernelParts parts = problem_.base_mean;
    double least_received = 0;
    for (const auto& options : tables) {
      double least = kInfinity;
      KernelParts mean = {kInfinity, kInfinity, kInfinity};
      for (const BoundOption& o : options) {
        for (size_t c = 0; c < kKernelParts; ++c) mean[c] = std::min(mean[c], o.mean[c]);
        least = std::min(least, o.received);
      }
      for (size_t c = 0; c < kKernelParts; ++c) parts[c] += mean[c];
      least_received += least;
    }
    if (least_received > received.high * (1 + kRounding)) return kInfinity;
    const Prices prices = AdjustedPrices(tables, PricesAt(tables, parts, received, reduced), received, reduced);
    double bound = LevelBound(tables, prices, Level::kKernels, best);
    if (bound < best) bound = std::max(bound, LevelBound(tables, prices, Level::kRank, best));
    return bound;
  }

  // Other prices of the exchange, with what the cell's ends make of them: the sum of what is received, x, lies in
  // [low, high], so that b x >= q b x + (1 - q) b low for q < 1, and + (1 - q) b high for q > 1. Reduced alike.
  Prices AdjustedPrices(const Options& tables, const Prices& prices, const Range& received,
                        const Range& reduced) const {
    const auto adjusted = [&](double q, double r) {
      Prices now = prices;
      now.received *= q;
      now.reduced *= r;
      now.constant += prices.received * (1 - q) * (q < 1 ? received.low : received.high);
      now.constant += prices.reduced * (1 - r) * (r < 1 ? reduced.low : reduced.high);
      return now;
    };
    double q = 1, r = 1, best = Even(tables, prices);
    for (const bool of_received : {true, false, true}) {
      if ((of_received ? prices.received : prices.reduced) <= 0) continue;
      for (const double factor : kPriceFactors) {
        const double even = Even(tables, of_received ? adjusted(factor, r) : adjusted(q, factor));
        if (even <= best) continue;
        best = even;
        (of_received ? q : r) = factor;
      }
    }
    return adjusted(q, r);
  }

  // The bound by the means alone.
  double Even(const Options& tables, const Prices& prices) const {
    double sum = prices.constant;
    for (size_t c = 0; c < kKernelParts; ++c) sum += prices.kernel[c] * problem_.base_mean[c];
    for (const auto& options : tables) {
      double least = kInfinity;
      for (const BoundOption& o : options) {
        double value = prices.received * o.received + prices.reduced * o.reduced_mean();
        for (size_t c = 0; c < kKernelParts; ++c) value += prices.kernel[c] * o.mean[c];
        least = std::min(least, value);
      }
      sum += least;
    }
    return sum;
  }

  // sum_t min_o (reduced + m received) - m x for the best m >= 0: concave in m.
  static double LeastReduced(const Options& tables, double received_most) {
    double best = 0;
    for (double m = 1e-4; m < 1e4; m *= 1.25) {
      double sum = -m * received_most;
      for (const auto& options : tables) {
        double least = kInfinity;
        for (const BoundOption& o : options) least = std::min(least, o.reduced_mean() + m * o.received);
        sum += least;
      }
      best = std::max(best, sum);
    }
    return best;
  }

  Prices PricesAt(const Options& tables, const KernelParts& parts, const Range& of_received,
                  const Range& of_reduced) const {
    const double received = of_received.low, received_most = of_received.high;
    const double reduced = of_reduced.low, reduced_most = of_reduced.high;
    const auto work = [&](const KernelParts& kernels, double x, double n) {
      return WorkOfParts(pricer_, fixed_, tables, kernels, x, n);
    };
    const double step = pricer_.StepOf(work(parts, received, reduced)).value;
    Prices prices;
    prices.constant = step;
    const auto slope = [&](double amount, const EmbeddingWork& less) {
      return amount > 0 ? std::max(0.0, step - pricer_.StepOf(less).value) / (kDifference * amount) : 0.0;
    };
    for (const size_t c : {size_t{0}, size_t{2}}) {
      KernelParts less = parts;
      less[c] *= 1 - kDifference;
      prices.kernel[c] = slope(parts[c], work(less, received, reduced));
      prices.constant -= prices.kernel[c] * parts[c];
    }
    prices.kernel[1] = prices.kernel[2];  // one task
    prices.constant -= prices.kernel[1] * parts[1];
    const StepGraph here = pricer_.Graph(work(parts, received, reduced));
    if (received > 0) {
      const EmbeddingWork less = work(parts, received * (1 - kDifference), reduced);
      prices.received = slope(received, less) * ChordShare(here, less, work(parts, received_most, reduced),
                                                           kDifference * received, received_most - received);
      prices.constant -= prices.received * received;
    }
    if (reduced > 0) {
      const EmbeddingWork less = work(parts, received, reduced * (1 - kDifference));
      prices.reduced = slope(reduced, less) * ChordShare(here, less, work(parts, received, reduced_most),
                                                         kDifference * reduced, reduced_most - reduced);
      prices.constant -= prices.reduced * reduced;
    }
    return prices;
  }

  // The least over the tasks of the slope up to `most` over the slope down to `less`; at most 1.
  double ChordShare(const StepGraph& here, const EmbeddingWork& less, const EmbeddingWork& most, double down,
                    double up) const {
    if (up <= 0) return 1;  // nothing above
    const StepGraph below = pricer_.Graph(less), above = pricer_.Graph(most);
    double share = 1;
    for (size_t i = 0; i < here.tasks.size(); ++i) {
      const double local = (here.tasks[i].estimate.total - below.tasks[i].estimate.total).value / down;
      const double chord = (above.tasks[i].estimate.total - here.tasks[i].estimate.total).value / up;
      if (local > 0) share = std::min(share, std::max(0.0, chord / local));
    }
    return share;
  }

  enum class Level {
    kKernels,  // the kernels of a rank
    kRank,     // and what it sends and reduces
  };

  double LevelBound(const Options& tables, const Prices& prices, Level kind, double best) const {
    const bool all = kind == Level::kRank;
    std::vector<std::vector<Levelled>> levelled;
    for (const auto& options : tables) {
      std::vector<Levelled> list;
      for (const BoundOption& o : options) {
        Levelled level;
        double shard = 0;
        for (size_t c = 0; c < kKernelParts; ++c) {
          level.mean += prices.kernel[c] * o.mean[c];
          shard += prices.kernel[c] * o.shard[c];
        }
        level.shards = o.shards;
        const double moved = prices.received * o.received + prices.reduced * o.reduced_mean();
        if (all) {
          shard += prices.received * o.sent;
          level.mean += prices.received * o.sent_mean() + prices.reduced * o.reduced_mean();
        } else {
          level.rest = moved;
        }
        const double reduced = all ? prices.reduced * o.reduced : 0.0;
        level.first = shard * o.first + reduced;
        level.other = shard * o.other + reduced;
        list.push_back(level);
      }
      levelled.push_back(std::move(list));
    }
    double base = 0, base_least = 0;
    for (size_t c = 0; c < kKernelParts; ++c) {
      base += prices.kernel[c] * problem_.base_mean[c];
      base_least += prices.kernel[c] * problem_.base_least[c];
    }
    const double even = Relaxed(levelled, 1, kInfinity, 0, 0, base);
    if (prices.constant + even >= best) return prices.constant + even;
    double level = base, rest = 0;
    for (const auto& list : levelled) {
      double mean = kInfinity, least = kInfinity;
      for (const Levelled& o : list) {
        mean = std::min(mean, o.mean);
        least = std::min(least, o.rest);
      }
      level += mean;
      rest += least;
    }
    double bound = kInfinity;
    for (int k = 0; k < kLevels && level + rest < bound; ++k) {
      const double next = k + 1 < kLevels ? level * kLevelRatio : kInfinity;
      bound = std::min(bound, std::max(even, CellOfLevel(levelled, level, next - base_least, base, bound)));
      level = next;
    }
    return prices.constant + bound;
  }

  // The best multipliers found for one cell; stops at `enough`.
  double CellOfLevel(const std::vector<std::vector<Levelled>>& tables, double level, double room, double base,
                     double enough) const {
    double best = -kInfinity, best_mix = 1;
    for (const double mix : kMixes) {
      const double bound = (1 - mix) * level + Relaxed(tables, mix, room, 0, 0, mix * base);
      if (bound > best) best_mix = mix;
      best = std::max(best, bound);
      if (best >= enough) return best;
    }
    if (room == kInfinity) return best;
    for (const double small : kSmallShares) {
      double last = -kInfinity;
      for (const double price : kShardPrices) {
        const double bound =
            (1 - best_mix) * level + Relaxed(tables, best_mix, room, small, price * level, best_mix * base);
        best = std::max(best, bound);
        if (best >= enough) return best;
        if (bound < last) break;  // concave in the price
        last = bound;
      }
    }
    return best;
  }

  // base + sum_t min_o [mix L + rest + price sum f / D] - price over the options whose shards fit into `room`.
  double Relaxed(const std::vector<std::vector<Levelled>>& tables, double mix, double room, double small, double price,
                 double base) const {
    double sum = base - price;
    const double limit = room * (1 + kRounding);
    for (const auto& options : tables) {
      double least = kInfinity;
      for (const Levelled& o : options) {
        if (std::max(o.first, o.other) > limit) continue;
        double value = mix * o.mean + o.rest;
        if (price > 0) {
          const double used =
              DualFeasible(o.first / room, small) + (o.shards - 1) * DualFeasible(o.other / room, small);
          value += price * used / devices_;
        }
        least = std::min(least, value);
      }
      if (least == kInfinity) return kInfinity;
      sum += least;
    }
    return sum;
  }

  const StepPricer& pricer_;
  const BoundProblem& problem_;
  const EmbeddingWork& fixed_;
  double devices_ = 1;
};

}  // namespace

Seconds PlacementDualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed) {
  if (problem.tables.empty() || pricer.recipe().concurrency != Concurrency::kSingleStream) return Seconds(0);
  return Seconds(DualBound(pricer, problem, fixed).Find());
}

}  // namespace portolan
