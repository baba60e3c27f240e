#pragma once

#include <vector>

#include "plan/placement.h"
#include "plan/shard_cost.h"

namespace portolan {

// The splits that a placement may give a table: one for a table whose sharding the recipe fixes; for kAuto whole, by
// row or by column into kSplitCounts parts (columns of at least kLeastColumns) and, on several nodes, by row over the
// devices of 1, 2, 4, ... nodes.
std::vector<TableSplit> SplitOptions(const Model& model, const Recipe& recipe, const Cluster& cluster, size_t table,
                                     const TablePlacement& place);

}  // namespace portolan
