#pragma once

#include <vector>

#include "engine/batch.h"
#include "engine/network.h"

namespace portolan {

// How the lookups of a step fall on the rows of a table, from batches of the job's own data.
struct TableLookups {
  double lookups = 0;   // a batch
  double bags = 0;      // a batch: features of the table x samples
  double distinct = 0;  // rows a batch
  // Part of the distinct rows of a batch that the last-level cache no longer holds from the batches before.
  double cold_rows = 0;
};

// Means over `batches` (the first ones warm the picture up). Rows are in the cache while the bytes that were touched
// since are fewer than `cache_bytes`: rows with their optimizer state, and `other_bytes` a step (activations).
std::vector<TableLookups> CountLookups(const NetworkPlan& plan, const std::vector<Batch>& batches, double cache_bytes,
                                       double other_bytes);

}  // namespace portolan
