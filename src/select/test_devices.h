#pragma once

#include "hw/accelerator.h"
#include "select/problem.h"

namespace portolan {

// An accelerator with round numbers for hand sums: 100 units, 1 TFLOP/s of bf16 and 1 GB/s of L2 each, 50 GB/s HBM.
inline Accelerator RoundAccelerator() {
  Accelerator a;
  a.id = "round";
  a.name = "Round numbers";
  a.vendor = "nvidia";
  a.isa = "sm_90";
  a.compute_units = 100;
  a.clock_boost = Hertz(1e9);
  a.peak_matrix[DType::kBf16] = FlopsPerSecond(1e14);
  a.sustained_matrix[DType::kBf16] = FlopsPerSecond(1e14);
  a.peak_vector_fp32 = FlopsPerSecond(1e13);
  a.shared_memory_per_unit = Bytes(228 * 1024);
  a.registers_per_unit = Bytes(256 * 1024);
  a.l2 = Bytes(6e7);
  a.l2_rate = BytesPerSecond(1e11);
  a.hbm_peak = BytesPerSecond(5e10);
  a.hbm_sustained = BytesPerSecond(5e10);
  a.kernel_fixed = Seconds(2e-6);
  return a;
}

inline GemmProblem Product(int64_t m, int64_t n, int64_t k, GemmLayout layout = GemmLayout::kTN) {
  GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.layout = layout;
  return p;
}

}  // namespace portolan
