#pragma once

#include <array>
#include <limits>
#include <vector>

#include "plan/step_pricer.h"

namespace portolan {

constexpr size_t kKernelParts = 3;  // forward, sort, update
using KernelParts = std::array<double, kKernelParts>;

// What one split of a table adds to the parts of a step, however its shards are dealt. Seconds and elements.
struct BoundOption {
  KernelParts mean{};    // over all ranks
  KernelParts shard{};   // of a shard, the mean over the shards
  KernelParts launch{};  // fixed cost of a kernel that holds it
  double shards = 1;
  double first = 1, other = 1;  // of `shard`: the first shard's share, and that of each other one
  double received = 0;          // elements, of every rank
  double sent = 0;              // elements of a shard
  double reduced = 0;           // elements of a shard; does not depend on `first`
  double unpooled_mean = 0, tables_mean = 0;
  double devices = 1;
  bool on_nodes = false;
  TableSplit split;

  double largest() const { return first > other ? first : other; }
  double sent_mean() const { return sent * shards / devices; }
  double reduced_mean() const { return reduced * shards / devices; }
};

// The open tables of a recipe with the splits they may have, and what every rank has in any case.
struct BoundProblem {
  std::vector<std::vector<BoundOption>> tables;
  KernelParts base_mean{};   // replicated tables, tables on all ranks, copies of the hottest rows
  KernelParts base_least{};  // of the rank with least of them
};

// `greedy`: the placement whose replicated and fixed tables the bound takes over. Splits whose shard is larger than a
// rank's memory are left out where a table has others: only placements that fit are bounded.
BoundProblem MakeBoundProblem(StepPricer& pricer, const Placement& greedy);

// A step from kernel seconds without launch, elements received or sent, and elements reduced; everything else as low as
// the options of `tables` allow. `fixed`: work of any placement, for what does not depend on it.
EmbeddingWork WorkOfParts(const StepPricer& pricer, const EmbeddingWork& fixed,
                          const std::vector<std::vector<BoundOption>>& tables, const KernelParts& parts,
                          double exchanged, double reduced);

}  // namespace portolan
