#pragma once

#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "ops/embedding.h"

namespace portolan {

// How many of the row reads of one launch find their row in a cache of `usable` bytes.
struct RowReuse {
  double misses = 0;  // reads that go past the cache; never fewer than unique_rows
  double hits = 0;    // lookups - misses
};
// Che's approximation of an LRU cache (Che, Tung, Wang, IEEE JSAC 20(7), 2002): a row that is looked up c times in the
// launch and was read once is found again with probability 1 - exp(-c t), where t is the share of the launch for which
// the cache holds a row: sum over rows (1 - exp(-c t)) row bytes = usable. Tables are served one after the other
// (table-batched kernels number their bags table by table), so one table's rows compete for the cache at a time.
// The counts c come from reuse_share; else, where unique_rows is smaller than table_rows uniform draws would give, from
// the Zipf law that gives it; else every row has the mean count.
RowReuse EmbeddingRowReuse(const EmbeddingShape& shape, Bytes usable, Bytes row_bytes);

// Lookups of the most looked-up row of the launch, by the same counts.
double EmbeddingHottestRowLookups(const EmbeddingShape& shape);

// Gather and pool in one kernel. memory = ramp + (hbm^4 + mall^4 + l2^4 + lanes^4)^(1/4), at least rows, with
//   hbm   = HbmSeconds(indices + misses x row lines, pooled output); a row's lines are its bytes rounded up to
//           memory_line: short rows waste them
//   mall  = reads that miss the L2, over mall_rate
//   l2    = all row reads (in 32-byte sectors), indices and output, over l2_rate
//   lanes = rounds of loads that wait for an index, over what the resident lanes hold in flight: binds with one row a
//           bag, since a bag of 8 and more has its rows in flight together
//   rows  = lookups over the rows that the units can start
// The constants, their data and date: embedding.cc. Errors: docs/cost-memory.md.
Estimate EmbeddingForwardEstimate(const EmbeddingShape& shape, const Accelerator& accelerator);

// Sort of the indices, then gradient reduction over duplicates fused with the update of the unique rows and their state
// (traffic: ops/embedding.h). Gradient rows that are read again (pooled bags) hit the caches by the same law as rows
// do. The hottest row is a lower bound: its gradients are added by few compute units. Prices library kernels: 1.3 x
// what the kernels of tools/measure_gpu need.
Estimate EmbeddingBackwardEstimate(const EmbeddingShape& shape, EmbeddingOptimizer optimizer,
                                   const Accelerator& accelerator);
// Fixed costs of the kernels (launches, latencies of dependent loads and of radix passes) are in `launch`: tables that
// share a launch pay them once. Its two phases: the sort needs the indices only and may run beside other work; the
// update needs the gradient.
Estimate EmbeddingSortEstimate(const EmbeddingShape& shape, const Accelerator& accelerator);
Estimate EmbeddingUpdateEstimate(const EmbeddingShape& shape, EmbeddingOptimizer optimizer,
                                 const Accelerator& accelerator);

}  // namespace portolan
