#pragma once

#include <vector>

#include "plan/placement.h"
#include "plan/shard_cost.h"

namespace portolan {

// What one unit of each part of the embedding work adds to the step: parts that hide behind others weigh little. The
// step is taken as linear in them near one placement.
struct PlacementWeights {
  double forward = 1, sort = 1, update = 1;  // seconds of the step a second of the slowest rank
  double exchanged_element = 0;              // seconds an element that the busiest rank sends or receives
  double reduced_element = 0;                // seconds an element first reduced inside its node
};

// The splits that a placement may give a table: one for a table whose sharding the recipe fixes; for kAuto whole, by
// row or by column into kSplitCounts parts (columns of at least kLeastColumns) and, on several nodes, by row over the
// devices of 1, 2, 4, ... nodes.
std::vector<TableSplit> SplitOptions(const Model& model, const Recipe& recipe, const Cluster& cluster, size_t table,
                                     const TablePlacement& place);

// Lowers weighted slowest forward + slowest sort + slowest update + exchange(max over ranks of sent, received) +
// slowest node reduction by local search: other splits of the hot tables, moves of shards, swaps with those of the
// fullest rank. Maxima are taken as p-norms over the ranks (p = 24, then 192), so that every move of a loaded rank
// counts and one is priced in constant time. Ranks stay below `memory_per_device`, or the fullest rank of the start.
// Returns the optima reached from `start` and, with kAfresh, from hot tables split by column and by row. Deterministic.
enum class SearchStarts { kHere, kAfresh };
std::vector<Placement> ImprovePlacement(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights,
                                        Bytes memory_per_device, SearchStarts starts);

}  // namespace portolan
