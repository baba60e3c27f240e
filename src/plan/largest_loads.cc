#include "plan/largest_loads.h"

#include <algorithm>
#include <limits>

namespace portolan {
namespace {

// Branch and bound over boxes of the parts' largest loads z. In a box low <= z <= high:
//   no shard is larger than high less what every rank has: options with larger ones are out;
//   a largest load is at least the mean, so with m >= 0 (m <= 1 where high is infinite)
//     z >= m mean + (1 - m) low for m <= 1,  z >= m mean - (m - 1) high for m > 1;
//   the means are sums over the tables, so that for every choice of options
//     sum z >= sum_parts [m base + (1 - m) (low or high)] + sum_t min_o sum_parts m mean(t, o).
// The right side is concave in m; its slope is the mean load of the minimising options less `low` (or `high`).
// The box with the least bound is cut where the minimising options' true largest loads are furthest above what the
// bound charges for them: below the cut these options are out, above it they are charged.
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;
constexpr double kClosed = 2e-4;                         // of the bound: a box is not cut for less
constexpr int kSteps = 30;                               // of ascent in m
constexpr double kFirstReach = 0.01, kLastReach = 5e-5;  // of the bound: what a step in m aims at
constexpr double kMostMix = 4;

struct Box {
  PartTimes low{}, high{}, mix{};
  LoadBound found;
  size_t part = 0;
  double cut = 0;  // of the part; 0: nothing to gain
};

class Branching {
 public:
  Branching(const LargestLoads& problem, double enough, int boxes)
      : problem_(problem), enough_(enough), boxes_(boxes) {}

  LoadBound Find() {
    Box root;
    root.low = problem_.low;
    root.high = problem_.high;
    root.mix.fill(1);
    Relax(root);
    const auto later = [](const Box& a, const Box& b) { return a.found.bound > b.found.bound; };
    std::vector<Box> boxes = {root};
    for (int n = 0; n < boxes_; ++n) {
      const Box& first = boxes.front();
      if (first.cut <= 0 || first.found.bound >= enough_) break;
      std::pop_heap(boxes.begin(), boxes.end(), later);
      const Box parent = std::move(boxes.back());
      boxes.pop_back();
      for (const bool below : {true, false}) {
        Box child = parent;
        (below ? child.high : child.low)[parent.part] = parent.cut;
        Relax(child);
        child.found.bound = std::max(child.found.bound, parent.found.bound);
        boxes.push_back(std::move(child));
        std::push_heap(boxes.begin(), boxes.end(), later);
      }
    }
    return boxes.front().found;
  }

 private:
  void Relax(Box& box) {
    box.cut = 0;
    if (!Allow(box)) {
      box.found = {kInfinity, {}, {}};
      return;
    }
    PartTimes mix = box.mix;
    box.found = {-kInfinity, {}, {}};
    double reach = 0;
    int stalled = 0;
    for (int step = 0; step < kSteps; ++step) {
      const double bound = At(box, mix);
      if (step == 0) reach = kFirstReach * bound;
      stalled = bound > box.found.bound + 0.05 * reach ? 0 : stalled + 1;
      if (bound > box.found.bound) {
        box.found = {bound, chosen_, mean_};
        box.mix = mix;
      }
      if (box.found.bound >= enough_) return;
      PartTimes slope{};
      double square = 0;
      if (stalled >= 3) {
        reach *= 0.4;
        stalled = 0;
        mix = box.mix;
        if (reach < kLastReach * box.found.bound) break;
        At(box, mix);
      }
      const double now = stalled == 0 ? box.found.bound : bound;
      for (size_t c = 0; c < kLoadBoundParts; ++c) {
        const double down = mean_[c] - box.low[c], up = mean_[c] - box.high[c];
        slope[c] = mix[c] < 1 ? down : mix[c] > 1 ? up : up > 0 ? up : down < 0 ? down : 0;
        if (mix[c] <= 0) slope[c] = std::max(slope[c], 0.0);
        square += slope[c] * slope[c];
      }
      if (square <= 0) break;
      const double length = (box.found.bound + reach - now) / square;
      for (size_t c = 0; c < kLoadBoundParts; ++c) {
        const double next = std::clamp(mix[c] + length * slope[c], 0.0, box.high[c] < kInfinity ? kMostMix : 1.0);
        mix[c] = mix[c] != 1 && (mix[c] < 1) != (next < 1) ? 1.0 : next;  // a kink
      }
    }
    Cut(box);
  }

  // Which options a box leaves; false where a table has none.
  bool Allow(const Box& box) {
    allowed_.clear();
    begins_.clear();
    for (const auto& options : problem_.tables) {
      begins_.push_back(allowed_.size());
      for (const LoadOption& option : options) {
        bool fits = true;
        for (size_t c = 0; c < kLoadBoundParts; ++c) {
          fits &= problem_.base_least[c] + option.shard[c] <= box.high[c] * (1 + kRounding);
        }
        if (fits) allowed_.push_back(&option);
      }
      if (allowed_.size() == begins_.back()) return false;
    }
    begins_.push_back(allowed_.size());
    return true;
  }

  // The bound at one m; sets the minimising options and their means.
  double At(const Box& box, const PartTimes& mix) {
    double sum = 0;
    for (size_t c = 0; c < kLoadBoundParts; ++c) {
      sum += mix[c] * problem_.base[c];
      if (mix[c] != 1) sum += (1 - mix[c]) * (mix[c] < 1 ? box.low[c] : box.high[c]);
    }
    mean_ = problem_.base;
    chosen_.resize(problem_.tables.size());
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      double least = kInfinity;
      const LoadOption* best = nullptr;
      for (size_t i = begins_[t]; i < begins_[t + 1]; ++i) {
        const PartTimes& mean = allowed_[i]->mean;
        double value = 0;
        for (size_t c = 0; c < kLoadBoundParts; ++c) value += mix[c] * mean[c];
        if (value >= least) continue;
        least = value;
        best = allowed_[i];
      }
      sum += least;
      chosen_[t] = static_cast<size_t>(best - problem_.tables[t].data());
      for (size_t c = 0; c < kLoadBoundParts; ++c) mean_[c] += best->mean[c];
    }
    return sum;
  }

  void Cut(Box& box) const {
    double most = kClosed * box.found.bound;
    PartTimes largest = problem_.base_least;
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      const PartTimes& shard = problem_.tables[t][box.found.chosen[t]].shard;
      for (size_t c = 0; c < kLoadBoundParts; ++c) largest[c] = std::max(largest[c], problem_.base_least[c] + shard[c]);
    }
    for (size_t c = 0; c < kLoadBoundParts; ++c) {
      const double m = box.mix[c];
      const double charged = m * box.found.loads[c] + (m < 1   ? (1 - m) * box.low[c]
                                                       : m > 1 ? (1 - m) * box.high[c]
                                                               : 0);
      const double real = std::max({box.found.loads[c], largest[c], box.low[c]});
      box.found.loads[c] = real;
      if (real - charged <= most || real <= box.low[c] * (1 + kClosed)) continue;
      most = real - charged;
      box.part = c;
      box.cut = 0.5 * (box.low[c] + std::min(box.high[c], real));
    }
  }

  const LargestLoads& problem_;
  const double enough_;
  const int boxes_;
  std::vector<const LoadOption*> allowed_;
  std::vector<size_t> begins_;  // of each table's allowed options
  std::vector<size_t> chosen_;
  PartTimes mean_{};
};

}  // namespace

LoadBound BoundLargestLoads(const LargestLoads& problem, double enough, int boxes) {
  return Branching(problem, enough, boxes).Find();
}

}  // namespace portolan
