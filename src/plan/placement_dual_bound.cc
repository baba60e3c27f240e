#include "plan/placement_dual_bound.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "plan/largest_loads.h"

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
// Cells in x (the larger of what a rank receives and sends) and n cover what is possible (x = 0, n = 0, then
// intervals); in each, b v is bounded over all largest loads v that the shards can make (largest_loads.h). Where the
// step at the options that attain the bound lies clearly above it, a chord is too long: the cell is halved.
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDifference = 0.02;
constexpr double kCellRatio = 1.5;  // of received elements
constexpr int kCells = 14;
constexpr double kReducedRatio = 8;  // of reduced elements
constexpr int kReducedCells = 5;
constexpr double kSlack = 1e-3;                // of the step: what a chord may cost
constexpr double kShortestCell = 1.02;         // ratio of its ends
constexpr int kRoughBoxes = 16, kBoxes = 400;  // cut in largest_loads.h
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

class DualBound {
 public:
  DualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed)
      : pricer_(pricer), problem_(problem), fixed_(fixed) {}

  SplitBound Find() {
    const double bound = FindBound();
    return {Seconds(bound), std::move(splits_)};
  }

 private:
  // A range of what is exchanged and reduced, with the splits that it leaves.
  struct Cell {
    std::shared_ptr<const Options> tables;
    Range received, reduced;
    double bound = 0;
  };

  double FindBound() {
    std::vector<Cell> cells = Cells();
    // Roughly, so that the least one comes first and cuts the others short.
    double least = kInfinity, step = kInfinity;
    for (Cell& cell : cells) {
      cell.bound = Bound(cell, least, kRoughBoxes, &step);
      least = std::min(least, cell.bound);
    }
    std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.bound < b.bound; });
    double bound = kInfinity;
    for (const Cell& cell : cells) {
      if (cell.bound < bound) bound = std::min(bound, std::max(cell.bound, Refined(cell, bound)));
    }
    return bound;
  }

  std::vector<Cell> Cells() const {
    std::vector<Cell> cells;
    double least_positive = kInfinity, least = 0, most = 0;
    for (const auto& options : problem_.tables) {
      double low = kInfinity, high = 0;
      for (const BoundOption& o : options) {
        low = std::min(low, o.received);
        high = std::max({high, o.received, o.sent * o.largest()});
        if (o.received > 0) least_positive = std::min(least_positive, o.received);
      }
      least += low;
      most += high;
    }
    if (least <= 0) AddCells({0, 0}, &cells);
    if (most <= 0) return cells;
    double low = std::max(least, least_positive);
    for (int i = kCells; i-- > 0 && low < most;) {
      const double high = i == 0 ? most : std::max(low, most * std::pow(kCellRatio, -i));
      if (high <= low) continue;
      AddCells({low, high}, &cells);
      low = high;
    }
    if (low >= most) AddCells({most, most}, &cells);
    return cells;
  }

  void AddCells(const Range& received, std::vector<Cell>* cells) const {
    Options flat, some;
    bool all_flat = true, any_reduced = false;
    for (const auto& options : problem_.tables) {
      std::vector<BoundOption> allowed, unreduced;
      for (const BoundOption& o : options) {
        if (o.received > received.high * (1 + kRounding)) continue;
        allowed.push_back(o);
        any_reduced |= o.reduced > 0;
        if (o.reduced <= 0) unreduced.push_back(o);
      }
      if (allowed.empty()) return;
      all_flat &= !unreduced.empty();
      flat.push_back(std::move(unreduced));
      some.push_back(std::move(allowed));
    }
    if (all_flat) cells->push_back({std::make_shared<Options>(std::move(flat)), received, {0, 0}});
    if (!any_reduced) return;
    const auto tables = std::make_shared<const Options>(std::move(some));
    double most = 0, least = kInfinity;
    for (const auto& options : *tables) {
      double largest = 0;
      for (const BoundOption& o : options) {
        largest = std::max(largest, o.reduced);
        if (o.reduced > 0) least = std::min(least, o.reduced_mean());
      }
      most += largest;
    }
    least = std::max(least, LeastReduced(*tables, received.high));
    for (int i = kReducedCells; i-- > 0 && least <= most;) {
      const double upper = i == 0 ? most : std::min(most, std::max(least, most * std::pow(kReducedRatio, -i)));
      if (upper <= least && i > 0) continue;
      cells->push_back({tables, received, {std::min(least, upper), upper}});
      least = upper;
    }
  }

  // The bound of a cell, or of its halves and theirs.
  double Refined(const Cell& cell, double best) {
    double step = kInfinity;
    const double bound = Bound(cell, best, kBoxes, &step);
    if (bound >= best || step < bound * (1 + kSlack)) return bound;
    const double by_received = Ratio(cell.received), by_reduced = Ratio(cell.reduced);
    if (std::max(by_received, by_reduced) < kShortestCell) return bound;
    Cell low = cell, high = cell;
    if (by_received * by_received > by_reduced) {  // most elements are exchanged
      low.received.high = high.received.low = Middle(cell.received);
    } else {
      low.reduced.high = high.reduced.low = Middle(cell.reduced);
    }
    const double of_low = Refined(low, best);
    return std::max(bound, std::min(of_low, Refined(high, std::min(best, of_low))));
  }

  // `step`: that of the splits that attain the bound, where it is less than `best`. Keeps the splits with the least.
  double Bound(const Cell& cell, double best, int boxes, double* step) {
    const Options& tables = *cell.tables;
    const Range &received = cell.received, &reduced = cell.reduced;
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
    const Prices prices = PricesAt(tables, parts, received, reduced);
    const LargestLoads loads = Loads(tables, prices, received, reduced);
    const LoadBound found = BoundLargestLoads(loads, best - prices.constant, boxes);
    const double bound = prices.constant + found.bound;
    if (bound >= best) return bound;
    *step = StepAt(tables, prices, found.loads);
    if (*step >= least_step_) return bound;
    least_step_ = *step;
    splits_.clear();
    for (size_t t = 0; t < tables.size(); ++t) splits_.push_back(tables[t][found.chosen[t]].split);
    return bound;
  }

  static double Ratio(const Range& range) { return range.low > 0 ? range.high / range.low : range.high > 0 ? 2 : 1; }
  static double Middle(const Range& range) {
    return range.low > 0 ? std::sqrt(range.low * range.high) : range.high / 2;
  }

  LargestLoads Loads(const Options& tables, const Prices& prices, const Range& received, const Range& reduced) const {
    LargestLoads loads;
    for (size_t c = 0; c < kKernelParts; ++c) {
      loads.base[c] = prices.kernel[c] * problem_.base_mean[c];
      loads.base_least[c] = prices.kernel[c] * problem_.base_least[c];
    }
    PartTimes least_means = loads.base;
    for (const auto& options : tables) {
      std::vector<LoadOption> list;
      PartTimes least;
      least.fill(kInfinity);
      for (const BoundOption& o : options) {
        LoadOption load;
        for (size_t c = 0; c < kKernelParts; ++c) {
          load.mean[c] = prices.kernel[c] * o.mean[c];
          load.shard[c] = prices.kernel[c] * o.shard[c] * o.largest();
        }
        load.mean[kReceivedPart] = prices.received * o.received;  // the exchange: the larger of received and sent
        load.shard[kReceivedPart] = prices.received * o.sent * o.largest();
        load.mean[kReducedPart] = prices.reduced * o.reduced_mean();
        load.shard[kReducedPart] = prices.reduced * o.reduced;
        for (size_t c = 0; c < kLoadBoundParts; ++c) least[c] = std::min(least[c], load.mean[c]);
        list.push_back(load);
      }
      for (size_t c = 0; c < kLoadBoundParts; ++c) least_means[c] += least[c];
      loads.tables.push_back(std::move(list));
    }
    loads.low = least_means;
    loads.low[kReceivedPart] = std::max(least_means[kReceivedPart], prices.received * received.low);
    loads.low[kReducedPart] = std::max(least_means[kReducedPart], prices.reduced * reduced.low);
    loads.high.fill(kInfinity);
    loads.high[kReceivedPart] = prices.received * received.high;
    loads.high[kReducedPart] = prices.reduced * reduced.high;
    return loads;
  }

  double StepAt(const Options& tables, const Prices& prices, const PartTimes& loads) const {
    const auto amount = [](double seconds, double price) { return price > 0 ? seconds / price : 0.0; };
    KernelParts parts;
    for (size_t c = 0; c < kKernelParts; ++c) parts[c] = amount(loads[c], prices.kernel[c]);
    return pricer_
        .StepOf(WorkOfParts(pricer_, fixed_, tables, parts, amount(loads[kReceivedPart], prices.received),
                            amount(loads[kReducedPart], prices.reduced)))
        .value;
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

  const StepPricer& pricer_;
  const BoundProblem& problem_;
  const EmbeddingWork& fixed_;
  double least_step_ = kInfinity;
  std::vector<TableSplit> splits_;  // with that step
};

}  // namespace

SplitBound PlacementDualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed) {
  if (problem.tables.empty() || pricer.recipe().concurrency != Concurrency::kSingleStream) return {Seconds(0), {}};
  return DualBound(pricer, problem, fixed).Find();
}

}  // namespace portolan
