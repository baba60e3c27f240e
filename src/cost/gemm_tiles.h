#pragma once

#include "cost/gemm.h"
#include "cost/memory_bound.h"
#include "hw/accelerator.h"
#include "ops/gemm.h"
#include "units/quantity.h"

namespace portolan {

// How a device feeds its matrix units. Two kinds exist so far: waves load operands into registers and issue each matrix
// instruction between the loads (AMD, and NVIDIA before sm_90), or bulk copies and matrix instructions that read shared
// memory run by themselves (sm_90 and later).
struct GemmPipeline {
  double lds_share;    // share of the operand reads from shared memory that delays the matrix units
  double step_s;       // shortest step of the K loop (128 bytes of K): barrier, addresses, first matrix instruction
  double overlap;      // matrix and memory time combine as sqrt(a^2 + b^2 + overlap a b)
  double reduction_s;  // split-K: semaphore or second kernel, without its traffic
};

// The shared constants of the GEMM model: one set for all devices. Fitted on 2026-11-30 to GEMM micro-benchmarks on
// H200, H100, B200, MI300X, MI350X and MI355X by minimising the mean absolute log error (each data set weighted, an
// error cut at e) with Powell's method over a random 70 % of the shapes. No time from inside a training step was used.
// memory_latency_*, issued.lds_share and async.overlap were held: the data do not tell them from inflight, step_s and
// zero. docs/cost-gemm.md has the data sets, and the errors on the other 30 % and on chips left out.
struct GemmConstants {
  GemmPipeline issued = {2.0, 5.0e-8, 0.23, 1.3e-6};
  GemmPipeline async = {0.39, 9.5e-8, 0.0, 3.3e-6};
  double wide_step = 4.3;       // step_s of 32-bit operands, over 16-bit ones, where matrix units want K contiguous
  double transpose = 0.23;      // matrix time added there by one operand whose K is not contiguous; four times for two
  double partial_wave = 0.50;   // share of a partial wave's idle units that stream-K and boost clocks recover
  double l2_unit_share = 0.84;  // L2 rate that one unit may draw, over l2_rate / compute_units
  double multicast = 2.4;       // loads from the L2 saved by clusters of units (sm_90 and later)
  double memory_latency_s = 0.6e-6;       // from the issue of a tile load to its use, under load
  double memory_latency_dies_s = 2.0e-6;  // the same between dies with private L2s
  double inflight = 0.56;                 // share of a unit's shared memory that holds loads in flight
  double load_lanes = 3.6;                // element loads and stores a clock and unit without the vector path
  double load_width = 0.33;               // power of (aligned bytes / element bytes) by which wider rows help
  double read_share = 0.84;               // share of hbm_peak that loads reach, where more than hbm_sustained
  double exposed_store = 0.32;            // share of the output's store time that nothing hides
  // Time of loads that a die's own L2 holds from the kernel before, over those that come from behind it: the measured
  // read rate of an MI300X's L2s (13.6 TB/s, RRZE-HPC/gpu-benches@1038c5d) over 128 B a clock and channel. Not fitted.
  double die_l2_share = 0.40;
  double refetch = 0.45;  // share of the operand re-reads past the L2 that costs time
};

inline constexpr GemmConstants kGemmConstants{};

// The kernel that the model picks, and the terms of its time in seconds:
//   total = fixed + max(sqrt(m^2 + hbm^2 + overlap m hbm), l2, latency) + store + reduction,   m = max(matrix, issue)
struct GemmTerms {
  int tile_m = 0;
  int tile_n = 0;
  int split_k = 1;
  double fixed = 0.0;      // launch, first loads and last store: the device's shortest useful kernel
  double matrix = 0.0;     // matrix units of the busiest compute unit, tile and wave quantisation included
  double issue = 0.0;      // element-wise loads and stores of misaligned rows, zero where all rows take vector loads
  double hbm = 0.0;        // compulsory traffic, or the re-reads of tiles where that is more
  double l2 = 0.0;         // loads of the busiest unit from the L2
  double latency = 0.0;    // K steps that wait for loads in flight
  double store = 0.0;      // exposed part of the output's store
  double reduction = 0.0;  // split-K partial sums
  double total = 0.0;
};

// The fastest of the candidate tiles and splits. A shape with an empty dimension costs `fixed`.
GemmTerms GemmBest(const GemmShape& shape, const Accelerator& accelerator, InputResidency inputs,
                   const GemmConstants& constants = kGemmConstants);

// The rate at which the device multiplies `compute` operands in large products: sustained_matrix[compute] or, where the
// device has no such path, what stands in for it:
//   tf32             the fastest of bf16 / 3 (three bf16 products, where bf16 is native), fp32 matrix, fp32 vector
//   fp32, int32/64   fp32 vector; fp64: half of that
//   fp8, mx, int8    the widest of fp8, bf16 and fp16
//   fp16, bf16       the other one, else fp32 vector
// Vector rates count at 3/4 of peak (assumed: the share that dense code keeps of the peak on matrix units).
FlopsPerSecond GemmRate(DType compute, const Accelerator& accelerator);

}  // namespace portolan
