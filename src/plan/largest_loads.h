#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "plan/bound_options.h"

namespace portolan {

constexpr size_t kReceivedPart = kKernelParts, kReducedPart = kReceivedPart + 1, kLoadBoundParts = kReducedPart + 1;
// Seconds of the step by part: forward, sort, update, exchange, reduction inside nodes.
using PartTimes = std::array<double, kLoadBoundParts>;

// One way to split a table.
struct LoadOption {
  PartTimes mean{};   // over the ranks
  PartTimes shard{};  // of the largest shard
};

// The largest load of any rank, part by part, lies in [low, high]. Every rank has `base_least` of each part, the mean
// rank has `base`, beside the tables.
struct LargestLoads {
  std::vector<std::vector<LoadOption>> tables;
  PartTimes base{}, base_least{}, low{}, high{};
};

struct LoadBound {
  double bound = 0;            // seconds; infinite where nothing fits
  std::vector<size_t> chosen;  // the option of each table that attains it in the relaxation; may be empty
  PartTimes loads{};           // of these
};

// A lower bound on the sum over the parts of the largest load, over all choices of one option a table and all ways to
// deal its shards. Stops when it is at least `enough`, or after cutting `boxes` in two. How it is found and why it
// holds: largest_loads.cc.
LoadBound BoundLargestLoads(const LargestLoads& problem, double enough, int boxes);

}  // namespace portolan
