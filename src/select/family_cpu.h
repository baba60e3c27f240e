#pragma once

#include "select/family.h"

namespace portolan {

// Products on the host's cores. Libraries there (oneDNN) expose no kernels; what a caller chooses is how it calls them:
//   cpu_threads   threads of one call; 0 = all cores
//   packed        1: the weights were reordered once and for all; 0: every call packs them
//   batch_split   parts of M that run side by side, each on threads / batch_split threads
//   dtype         the multiply's input format: fp32 weights may be multiplied in bf16, converted on the way
// One thread computes blocks of 32 x 64 outputs. Seconds, c = threads, s = batch_split:
//   launch   fork and join, fork_s x log2(2 c)
//   matrix   ceil(blocks of one part / (c / s)) x 2 x 32 x 64 x K / (matrix_share x sustained rate of a core)
//   hbm      (A + s' B + D) / (hbm_sustained x min(1, c / (saturation x cores))); s' = s where B exceeds the last cache
//   prologue packing (B read and written) and conversion of A (and of B, not packed) at the same bandwidth
//   total  = launch + prologue + max(matrix, hbm)
// Uncalibrated: no CPU time was checked.
extern const FamilyEntry kCpuFamily;

}  // namespace portolan
