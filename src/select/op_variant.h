#pragma once

#include <string>
#include <vector>

#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "ops/attention.h"
#include "ops/embedding.h"

namespace portolan {

// The choice between kernels of ops other than products: the same answer as Selector::Rank gives, candidates with their
// estimates, fastest first.
struct RankedVariant {
  std::string name;
  Estimate estimate;
};

// Backward pass of a table-batched embedding with a sorted, exact update: which kernel reduces a row's run of
// gradients.
//   warp  one wave (warp) a run: 24 us + lookups x (9.1 ns + 22.5 ps x dim)
//   cta   one work-group a run, and several for a run of more than 4,096 lookups: 5 us + the longer of
//         lookups x max(1.85 ns, 21.3 ps x dim) and min(lookups a table, 4096) x (27 ns + 18 ps x dim), the longest run
// Rates hold for 256 units at 2.2 GHz and scale with units x clock; the run's latency does not. Fit by hand,
// 2026-11-30, to the 39 times of one MI350X in FBGEMM's commit 8ac2022ea (pull request 5835): fp32 rows, row-wise
// Adagrad, 2,048 to 131,072 bags, 1 and 10 tables, 8 to 1,024 columns. Errors: docs/measurements.md. The kernels alone:
// the sort and the rest of the pass are common to both (cost/embedding.h).
std::vector<RankedVariant> RankEmbeddingBackward(const EmbeddingShape& shape, const Accelerator& accelerator);

enum class AttentionPass { kForward, kBackward };

// Fused by the vendor ("vendor"), fused and portable ("triton"), or with the score matrix in memory ("framework"):
// AttentionForwardEstimate and AttentionBackwardEstimate of each. The unfused one can win on short sequences alone.
std::vector<RankedVariant> RankAttention(const AttentionShape& shape, AttentionPass pass,
                                         const Accelerator& accelerator);

}  // namespace portolan
