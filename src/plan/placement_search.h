#pragma once

#include <vector>

#include "plan/placement.h"
#include "plan/shard_cost.h"
#include "plan/split_options.h"

namespace portolan {

// What one unit of each part of the embedding work adds to the step: parts that hide behind others weigh little. The
// step is taken as linear in them near one placement.
struct PlacementWeights {
  double forward = 1, sort = 1, update = 1;  // seconds of the step a second of the slowest rank
  double exchanged_element = 0;              // seconds an element that the busiest rank sends or receives
  double reduced_element = 0;                // seconds an element first reduced inside its node
};

// Lowers weighted slowest forward + slowest sort + slowest update + exchange(max over ranks of sent, received) +
// slowest node reduction by local search: other splits of the hot tables, moves of shards, swaps with those of the
// fullest rank. Maxima are taken as p-norms over the ranks (SmoothLoads). Ranks stay below `memory_per_device`
// (or, where the tables together leave no room for that, the fullest rank of the start). With kHere, returns the
// optimum reached from `start`, where the shards of pairs of ranks were dealt anew many times;
// with kAfresh those reached from `start` and from all tables dealt afresh in larger and larger shards. Deterministic.
// kAllFamilies: both, and afresh by rows, by columns and over nodes alone. kDealt: some reached when the tables are
// first dealt afresh in the splits of `start`.
enum class SearchStarts { kHere, kAfresh, kAllFamilies, kDealt };
// kFlat: none that is first reduced inside nodes, so that the exchange is one collective, not three. kNodes: only such
// ones, so that the exchange is two; tables of the start that cannot be split so stay as they are.
enum class SearchSplits { kAll, kFlat, kNodes };
std::vector<Placement> ImprovePlacement(ShardPricer& pricer, const Placement& start, const PlacementWeights& weights,
                                        Bytes memory_per_device, SearchStarts starts, SearchSplits splits);

}  // namespace portolan
