#include "cost/memory_bound.h"

#include <algorithm>

#include "base/check.h"

namespace portolan {
namespace {

// Fitted on 2026-11-30 to data/measured/h200/memory.json (NVIDIA H200, driver 580.159.04, tools/measure_gpu).

// Cost of a byte read alone and of a byte written alone against the mean byte of a copy, and what turning the bus
// between the two adds, so that a copy costs 1. Large tensors: copy_cold 4.00 TB/s; read_cold 4.57, write_cold 4.32,
// triad_cold 4.17, for which these give 4.49, 4.30 and 4.06. Another H200 (Azure ND_H200_v5 streams): copy 4.01, dot
// 4.48, triad 4.15.
constexpr double kReadCost = 0.89;
constexpr double kWriteCost = 0.93;
constexpr double kTurnCost = 2.0 * (2.0 - kReadCost - kWriteCost);

// Share of the hand-off cache that still holds what the previous kernel wrote: copy_handoff is faster than copy_cold
// while read + written is at most 32 MiB, and no faster from 64 MiB on (60 MiB L2).
constexpr double kUsableHandoffShare = 0.5;

double HitShare(Bytes working_set, Bytes usable) {
  if (usable <= Bytes(0)) return 0.0;
  return std::clamp(2.0 - working_set / usable, 0.0, 1.0);
}

}  // namespace

Seconds ComputeSeconds(const Work& work, const Accelerator& accelerator) {
  Seconds longest;
  if (work.matrix_flops > Flops(0)) {
    // A format that the matrix units lack runs on the vector units.
    FlopsPerSecond rate = accelerator.sustained_matrix[work.matrix_dtype];
    if (rate <= FlopsPerSecond(0)) rate = accelerator.peak_vector_fp32;
    PORTOLAN_CHECK(rate > FlopsPerSecond(0), "an accelerator needs a matrix or vector rate");
    longest = work.matrix_flops / rate;
  }
  if (work.vector_flops > Flops(0)) {
    PORTOLAN_CHECK(accelerator.peak_vector_fp32 > FlopsPerSecond(0), "an accelerator needs a vector rate");
    longest = std::max(longest, work.vector_flops / accelerator.peak_vector_fp32);
  }
  if (work.transcendentals > 0.0) {
    PORTOLAN_CHECK(accelerator.transcendental_per_s > 0.0, "an accelerator needs a transcendental rate");
    longest = std::max(longest, Seconds(work.transcendentals / accelerator.transcendental_per_s));
  }
  return longest;
}

Seconds HbmSeconds(Bytes read, Bytes written, const Accelerator& accelerator) {
  PORTOLAN_CHECK(accelerator.hbm_sustained > BytesPerSecond(0), "an accelerator needs a memory bandwidth");
  const Bytes total = read + written;
  if (total <= Bytes(0)) return Seconds(0);
  const Bytes turns = kTurnCost * (read / total) * written;
  const Seconds sustained = (kReadCost * read + kWriteCost * written + turns) / accelerator.hbm_sustained;
  if (accelerator.hbm_peak <= BytesPerSecond(0)) return sustained;
  return std::max(sustained, total / accelerator.hbm_peak);
}

HandoffCache FindHandoffCache(const Accelerator& accelerator) {
  const bool has_mall = accelerator.mall > Bytes(0) && accelerator.mall_rate > BytesPerSecond(0);
  const Bytes size = has_mall ? accelerator.mall : accelerator.l2;
  const BytesPerSecond rate = has_mall ? accelerator.mall_rate : accelerator.l2_rate;
  return {kUsableHandoffShare * size, std::max(rate, accelerator.hbm_sustained / kReadCost)};
}

Estimate StreamEstimate(const Work& work, const Accelerator& accelerator, InputResidency residency) {
  const HandoffCache cache = FindHandoffCache(accelerator);
  double share = 0;
  if (residency == InputResidency::kJustProduced) share = HitShare(work.read + work.written, cache.usable);
  const Bytes hit = share * work.read;
  Estimate estimate;
  estimate.launch = accelerator.kernel_fixed;
  estimate.memory = HbmSeconds(work.read - hit, work.written, accelerator) + hit / cache.rate;
  estimate.compute = ComputeSeconds(work, accelerator);
  estimate.total = estimate.launch + std::max(estimate.memory, estimate.compute);
  return estimate;
}

Estimate ElementwiseEstimate(const ElementwiseShape& shape, const Accelerator& accelerator) {
  return StreamEstimate(ElementwiseWork(shape), accelerator, InputResidency::kJustProduced);
}

Estimate DotInteractionForwardEstimate(const DotInteractionShape& shape, const Accelerator& accelerator) {
  return StreamEstimate(DotInteractionForwardWork(shape), accelerator, InputResidency::kJustProduced);
}

Estimate DotInteractionBackwardEstimate(const DotInteractionShape& shape, const Accelerator& accelerator) {
  return StreamEstimate(DotInteractionBackwardWork(shape), accelerator, InputResidency::kJustProduced);
}

Estimate DenseOptimizerEstimate(const DenseOptimizerShape& shape, const Accelerator& accelerator) {
  return StreamEstimate(DenseOptimizerWork(shape), accelerator, InputResidency::kCold);
}

}  // namespace portolan
