#pragma once

#include "cost/estimate.h"
#include "cost/memory_bound.h"
#include "hw/accelerator.h"
#include "ops/gemm.h"

namespace portolan {

// Time of the best kernel that a vendor library has for `shape`, from data-sheet and micro-benchmark figures of the
// device. `inputs` says where the operands lie; the output counts as written to HBM unless it fits a write-back L2
// together with inputs that were just produced.
//   compute = busiest unit: matrix instructions, element-wise loads of misaligned rows or waits for loads
//   memory  = L2 or HBM traffic, exposed stores, split-K partial sums
//   launch  = kernel_fixed
//   total   : see GemmTerms; less than the sum, more than the largest part
// gemm_tiles.h has the terms, docs/cost-gemm.md their sources and known errors. No allocation; a few microseconds.
Estimate GemmEstimate(const GemmShape& shape, const Accelerator& accelerator,
                      InputResidency inputs = InputResidency::kCold);

}  // namespace portolan
