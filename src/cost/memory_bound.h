#pragma once

#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/interaction.h"
#include "ops/optimizer.h"

namespace portolan {

// Where a kernel finds its inputs.
enum class InputResidency {
  kCold,          // in HBM: weights, optimizer state, activations kept for the backward pass
  kJustProduced,  // written by the kernel before it, so that a cache may still hold them
};

// Time of streamed HBM traffic without any fixed cost:
//   (0.89 read + 0.93 written + 0.36 read x written / (read + written)) / hbm_sustained,
// so that a copy takes (read + written) / hbm_sustained and one-way traffic about a tenth less; never less than (read +
// written) / hbm_peak.
Seconds HbmSeconds(Bytes read, Bytes written, const Accelerator& accelerator);

// Time for which the arithmetic units are busy: the longest of matrix_flops / sustained_matrix (peak_vector_fp32 for a
// format without a matrix path), vector_flops / peak_vector_fp32 and transcendentals / transcendental_per_s.
Seconds ComputeSeconds(const Work& work, const Accelerator& accelerator);

// The cache through which one kernel hands its results to the next: the memory-side cache where there is one (L2s that
// are private to a die are written back at the end of a kernel), else the L2. Half of its size is counted as usable.
struct HandoffCache {
  Bytes usable;
  BytesPerSecond rate;  // never below what a read of HBM gets
};
HandoffCache FindHandoffCache(const Accelerator& accelerator);

// Time of one streaming kernel with this work:
//   launch  = kernel_fixed
//   memory  = HbmSeconds(read - hit, written) + hit / cache rate
//   compute = ComputeSeconds
//   total   = launch + max(memory, compute)
// hit is 0 for cold inputs. For inputs that were just produced, hit = read x share, where share is 1 while read +
// written fits the usable part of the hand-off cache and falls linearly to 0 at twice that size. Writes always cost
// HBM time (they are evicted sooner or later). kernel_fixed over bytes is what makes small transfers slow: 1 MiB at a
// tenth of the bandwidth of 1 GiB. The estimate grows with every field of `work`. Known errors: docs/cost-memory.md.
Estimate StreamEstimate(const Work& work, const Accelerator& accelerator,
                        InputResidency residency = InputResidency::kCold);

// StreamEstimate of the op's work. Elementwise and interaction kernels read what the kernel before them wrote; the
// optimizer reads weights and state that have long left the caches.
Estimate ElementwiseEstimate(const ElementwiseShape& shape, const Accelerator& accelerator);
Estimate DotInteractionForwardEstimate(const DotInteractionShape& shape, const Accelerator& accelerator);
Estimate DotInteractionBackwardEstimate(const DotInteractionShape& shape, const Accelerator& accelerator);
Estimate DenseOptimizerEstimate(const DenseOptimizerShape& shape, const Accelerator& accelerator);

}  // namespace portolan
