#pragma once

#include <array>
#include <cmath>
#include <span>

#include "hw/accelerator.h"
#include "select/family.h"
#include "select/kernel.h"
#include "select/problem.h"
#include "select/terms.h"

namespace portolan {

// The engine shared by the NVIDIA families: a grid of output tiles, each a loop over K steps of 128 bytes (or the
// kernel's own depth) that is fed from the L2 through shared memory. Per K step of n work-groups that share a unit:
//   step(n) = ((n matrix)^4 + (n lds)^4 + (n l2)^4 + (n issue)^4 + c^4 + w^4)^(1/4)
//     matrix  2 tile_m tile_n k / (matrix_share x sustained rate of one unit)
//     lds     bytes that the matrix instructions read and the copies write / (lds_share x 128 B x clock)
//     l2      bytes that one work-group draws (cluster multicast counted once) / (l2_unit_share x l2_rate / units)
//     issue   16-byte vectors of the tile / 32 lanes x issue_s, more by 2^(align bits lost x align_*)
//     c       step_s + matrix + issue: one work-group alone cannot go faster
//     w       latency_s / (stages - 1) + c / 3: loads in flight cover the latency or the loop waits
// A round of n work-groups takes step(n) K-steps + prologue + n epilogue. The busiest unit runs floor(grid / wave)
// full rounds and one of what is left; a wave is units x occupancy work-groups. Then
//   (stream-K deals the steps of all tiles evenly instead and pays `reduction` for the tiles it cuts)
//   total = launch + (busiest^4 + hbm^4 + l2_device^4)^(1/4) + reduction (+ clearing)        times exp(factors)
// hbm counts the operands once, the output, and `refetch` of what the waves load again when the operands do not fit the
// L2. Powers of 4 cost two square roots; the exponent was 4 to 6 when it was left free (2026-11-30, H200, Triton
// sweep).

// One class of code paths of a family: constants by name, see kTileConstantSpecs.
enum TileConstant {
  kLaunch,
  kMatrixShare,
  kLdsShare,
  kLdsWrite,
  kStep,
  kLatency,
  kPrologue,
  kEpilogue,
  kEpilogueFixed,
  kL2UnitShare,
  kL2Share,
  kHbmShare,
  kRefetch,
  kIssue,
  kAlignA,
  kAlignB,
  kAlignD,
  kLayoutNN,
  kLayoutNT,
  kInPlace,
  kWorkspace,
  kReductionShare,
  kNarrow,
  kEightWarps,
  kStepDepth,
  kAtomic,
  kTileConstantCount
};
extern const std::array<ConstantSpec, kTileConstantCount> kTileConstantSpecs;
using TileConstants = std::array<double, kTileConstantCount>;

// What the engine needs of one device, worked out once.
struct TileDevice {
  double units = 1.0;
  double matrix_rate = 0.0;  // one unit, flop/s, of the family's compute type
  double lds_rate = 0.0;     // one unit, bytes/s
  double l2_rate = 0.0;      // device
  double hbm_rate = 0.0;     // device, data-sheet peak
  double l2_bytes = 0.0;
  double shared_memory = 0.0;  // of one unit
  double registers = 0.0;      // of one unit, bytes
  Accelerator accelerator;
};
TileDevice DescribeTileDevice(const Accelerator& accelerator, DType compute);

constexpr int kMaxTileClasses = 4;
constexpr int kLayouts = 3;

// A problem as the engine reads it.
struct TileProblem {
  double m, n, k, batch;
  double bytes_a, bytes_b, bytes_d;  // of an element
  int layout;
  double bits_lost_a, bits_lost_b, bits_lost_d;  // log2(16 bytes / alignment)
  double compulsory, output;                     // bytes
  double refetch;                                // 0 = operands stay in the L2, 1 = they do not fit at all
  double cached;                                 // share of the operands that a cache still holds
  double usable_share;                           // of the units
  double uneven_groups;                          // groups, 0 for one product
  std::array<double, kMaxTileClasses> issue_factor, epilogue_factor;
  double clearing;  // of an atomic split
  double floor;     // flops over the data sheet's peak: no factor may promise less
  const GemmProblem* source;
};
TileProblem DescribeTileProblem(const GemmProblem& problem, const TileDevice& device,
                                std::span<const TileConstants> classes);

// A kernel as the engine reads it: everything that does not depend on the problem.
struct TileKernel {
  int tile_class = 0;
  double tile_m = 1, tile_n = 1, split = 1, step_k = 1;
  double inv_tile_m = 1, inv_tile_n = 1, inv_split = 1, inv_step_k = 1;
  double cluster_m = 1, cluster_n = 1;
  double units = 1, occupancy = 1;
  double aspect = 1;        // sqrt(tile_n / tile_m)
  double rows_at_once = 0;  // rows of tiles that the grid order walks together; 0 = as square as possible
  // Seconds a K step.
  std::array<double, kLayouts> matrix{};
  double lds = 0, l2 = 0, issue = 0, step = 0, wait = 0;
  double prologue = 0, epilogue_tile = 0, epilogue_fixed = 0, launch = 0;
  double seconds_per_hbm_byte = 0, seconds_per_l2_byte = 0, refetch = 0;
  double step_l2_bytes = 0, bytes_k = 1;          // element of an operand
  double reduction = 0, seconds_per_partial = 0;  // a partial sum of one element
  double output_factor = 1;                       // bytes written over the output's size (atomics)
  bool atomic = false;
  // Stream-K: the K steps of all tiles are dealt evenly over the units; a deal that cuts tiles pays `reduction`.
  bool stream_k = false;
  // Logarithm of the calibrated factor, by layout, and its slopes (SlopeMultipliers).
  std::array<double, kLayouts> factor{};
  double by_depth = 0, by_fill = 0, by_traffic = 0, by_tail = 0, by_depth2 = 0, by_fill2 = 0, by_traffic2 = 0,
         by_breadth = 0, by_height = 0;
  std::array<std::array<float, kSlopeCount>, kLayouts> slopes{};  // by_* and those of one layout, summed
  bool supported = true;
};

// A kernel of these sizes with their inverses; `split` 0 or -1 (not set) counts as 1.
inline TileKernel MakeTileKernel(double tile_m, double tile_n, double step_k, int split) {
  TileKernel kernel;
  kernel.tile_m = tile_m;
  kernel.tile_n = tile_n;
  kernel.step_k = step_k;
  kernel.split = split > 1 ? split : 1;
  kernel.inv_tile_m = 1.0 / kernel.tile_m;
  kernel.inv_tile_n = 1.0 / kernel.tile_n;
  kernel.inv_step_k = 1.0 / kernel.step_k;
  kernel.inv_split = 1.0 / kernel.split;
  return kernel;
}

// The terms; regime is optional. EvaluateTileTotal(p, k) == EvaluateTile(p, k).total to the last bit.
KernelTerms EvaluateTile(const TileProblem& problem, const TileKernel& kernel, KernelRegime* regime = nullptr);
double EvaluateTileTotal(const TileProblem& problem, const TileKernel& kernel);

// Sum of the factors named by `keys` and of their slopes, added to the kernel.
void AddFactors(const FamilyConstants& constants, const std::string& key, TileKernel* kernel, int layout);

}  // namespace portolan
