#include "plan/largest_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

namespace portolan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Split {
  int shards = 1;
  PartTimes shard{};
  double received = 0;
};

struct Random {
  LargestLoads loads;
  std::vector<std::vector<Split>> splits;
};

// Tables of whole, halved and quartered shards; a cut costs exchange and some of the sort again.
Random MakeRandom(uint32_t seed, int tables, int devices) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0.05, 1);
  Random made;
  made.loads.base = {0.2, 0.1, 0.3, 0, 0};
  made.loads.base_least = {0.1, 0.1, 0.3, 0, 0};
  made.loads.high.fill(kInfinity);
  PartTimes least_means = made.loads.base;
  for (int t = 0; t < tables; ++t) {
    const PartTimes whole = {unit(random), 0.3 * unit(random), unit(random), unit(random), 0};
    std::vector<LoadOption> options;
    std::vector<Split> splits;
    PartTimes least;
    least.fill(kInfinity);
    for (int shards = 1; shards <= devices; shards *= 2) {
      Split split;
      split.shards = shards;
      for (size_t c = 0; c < kLoadBoundParts; ++c) split.shard[c] = whole[c] / shards;
      split.shard[1] = whole[1] * (0.7 + 0.3 / shards);
      split.shard[kReceivedPart] = whole[kReceivedPart];
      LoadOption option;
      option.shard = split.shard;
      for (size_t c = 0; c < kLoadBoundParts; ++c) option.mean[c] = split.shard[c] * shards / devices;
      split.received = option.mean[kReceivedPart];
      for (size_t c = 0; c < kLoadBoundParts; ++c) least[c] = std::min(least[c], option.mean[c]);
      options.push_back(option);
      splits.push_back(split);
    }
    for (size_t c = 0; c < kLoadBoundParts; ++c) least_means[c] += least[c];
    made.loads.tables.push_back(options);
    made.splits.push_back(splits);
  }
  made.loads.low = least_means;
  return made;
}

// The least sum of largest loads over every choice and every way to deal it.
double BestOfAll(const Random& problem, int devices) {
  std::vector<PartTimes> ranks(static_cast<size_t>(devices), problem.loads.base);
  double best = kInfinity, received = 0;
  const std::function<void(size_t)> next = [&](size_t t) {
    if (t == problem.splits.size()) {
      double sum = 0;
      for (size_t c = 0; c < kLoadBoundParts; ++c) {
        double largest = c == kReceivedPart ? received : 0;
        for (const PartTimes& rank : ranks) largest = std::max(largest, rank[c]);
        sum += largest;
      }
      best = std::min(best, sum);
      return;
    }
    for (const Split& split : problem.splits[t]) {
      received += split.received;
      for (unsigned held = 1; held < (1u << devices); ++held) {
        if (__builtin_popcount(held) != split.shards) continue;
        const auto add = [&](double sign) {
          for (int d = 0; d < devices; ++d) {
            if (((held >> d) & 1) == 0) continue;
            for (size_t c = 0; c < kLoadBoundParts; ++c) ranks[static_cast<size_t>(d)][c] += sign * split.shard[c];
          }
        };
        add(1);
        next(t + 1);
        add(-1);
      }
      received -= split.received;
    }
  };
  next(0);
  return best;
}

double ByMeans(const LargestLoads& loads) { return BoundLargestLoads(loads, -kInfinity, 0).bound; }

TEST(LargestLoads, NoPlacementIsUnderTheBound) {
  double bounds = 0, best = 0, means = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const int devices = seed % 2 == 0 ? 2 : 4, tables = devices == 2 ? 6 : 4;
    const Random problem = MakeRandom(seed, tables, devices);
    const LoadBound bound = BoundLargestLoads(problem.loads, kInfinity, 200);
    const double least = BestOfAll(problem, devices);
    EXPECT_LE(bound.bound, least * (1 + 1e-9)) << "seed " << seed;
    EXPECT_GE(bound.bound, ByMeans(problem.loads) * (1 - 1e-9)) << "seed " << seed;
    ASSERT_EQ(bound.chosen.size(), problem.splits.size());
    bounds += bound.bound;
    best += least;
    means += ByMeans(problem.loads);
  }
  // The largest shards count for a good part of what the means leave; how several meet on a rank the bound ignores.
  EXPECT_GT(bounds - means, 0.3 * (best - means));
}

TEST(LargestLoads, OneLargeTableSetsTheLoad) {
  // One shard of 1 s that cannot be cut, on 4 ranks, beside one of 0.4 s: the largest load is 1 s, not the mean.
  LargestLoads loads;
  LoadOption one, other;
  one.shard[0] = 1;
  one.mean[0] = 0.25;
  other.shard[0] = 0.4;
  other.mean[0] = 0.1;
  loads.tables = {{one}, {other}};
  loads.high.fill(kInfinity);
  loads.low[0] = 0.35;
  EXPECT_NEAR(BoundLargestLoads(loads, kInfinity, 200).bound, 1, 1e-2);
}

TEST(LargestLoads, ALoadThatNoOptionKeepsIsImpossible) {
  LargestLoads loads;
  LoadOption one;
  one.shard[2] = one.mean[2] = 1;
  loads.tables = {{one}};
  loads.high.fill(kInfinity);
  loads.high[2] = 0.9;
  EXPECT_EQ(BoundLargestLoads(loads, kInfinity, 200).bound, kInfinity);
}

}  // namespace
}  // namespace portolan
