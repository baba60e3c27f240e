#pragma once

#include <array>
#include <vector>

#include "engine/batch.h"
#include "engine/network.h"

namespace portolan {

// How the lookups of a step fall on the rows of a table, from batches of the job's own data.
struct TableLookups {
  double lookups = 0;   // a batch
  double bags = 0;      // a batch: features of the table x samples
  double distinct = 0;  // rows a batch
  // Part of the lookups that come to their row so soon again that a core's own cache still has it.
  double near = 0;
  // Part of the distinct rows of a batch that were last touched 1, 2, ... batches before, and that what was touched
  // since has not pushed out of the last-level cache. The rest is in memory.
  static constexpr size_t kAges = 16;
  std::array<double, kAges> aged{};
  double InCache() const;
};

struct CacheSizes {
  double near_bytes = 0, last_level_bytes = 0;
};

// Means over `batches` (the first ones warm the picture up). Rows are in the last level while the bytes that were
// touched since are fewer than it keeps: rows with their optimizer state, and `other_bytes` a step (activations).
std::vector<TableLookups> CountLookups(const NetworkPlan& plan, const std::vector<Batch>& batches,
                                       const CacheSizes& caches, double other_bytes);

}  // namespace portolan
