#pragma once

#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "ops/attention.h"

namespace portolan {

// Time of one attention layer on one device: forward, or backward with recomputed scores (three kernels: rowsum(O dO),
// main, conversion of the fp32 query gradient). Exact for equal lengths; jagged batches use mean lengths and
// mean_square_ratio, with half a tile of padding a sequence on the average.
//
// Fused: a block computes 128 queries of one head against its keys, 128 at a time, so that the tile grid pays for both
// lengths and for the causal diagonal (aligned to the last query and key, as FlashAttention does). One step takes
//   max(matrix, softmax) + (1 - overlap) min(matrix, softmax)
// of one compute unit, where softmax is the longer of special functions and vector operations, or their sum where both
// use the same pipe (64-wide waves), and a block adds a fixed prologue and epilogue. Device time is max(all blocks /
// units, longest block), and total = launch + max(compute, tensors read and written once) (+ the two streaming kernels,
// backward).
//
// Unfused: total = launch + max(products, their score traffic) + pointwise passes over the score matrix; the mask saves
// nothing.
//
// The constants are the same for every device; attention.cc states the public kernel measurements they come from and
// docs/cost-attention.md the error on each: mean 8 % forward (70 points of A100, H100, B200, MI355X), 15 % backward (34
// points; heads of 64 are 5 to 25 % too slow on NVIDIA and 5 to 25 % too fast on AMD).
Estimate AttentionForwardEstimate(const AttentionShape& shape, const Accelerator& accelerator,
                                  AttentionImplementation implementation = AttentionImplementation::kVendorTuned);
Estimate AttentionBackwardEstimate(const AttentionShape& shape, const Accelerator& accelerator,
                                   AttentionImplementation implementation = AttentionImplementation::kVendorTuned);

}  // namespace portolan
