#pragma once

#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "select/kernel.h"
#include "select/problem.h"

namespace portolan {

// Where the time of one kernel goes, all in seconds. The six terms of the main loop overlap; the others add up:
//   total = launch + prologue + main_loop + wave_quantisation + epilogue + split_reduction + clearing + clock +
//   residual main_loop = Overlap(matrix, lds, l2, mall, hbm, latency): their maximum, or a little more (each family
//   says which)
// A family fills what it models and leaves the rest zero.
struct KernelTerms {
  double launch = 0.0;    // start of the grid to the first instruction, and the drain of the last
  double prologue = 0.0;  // first tiles on their way from memory, before the first matrix instruction
  // Main loop, as if the grid were spread evenly over the units:
  double matrix = 0.0;   // matrix instructions
  double lds = 0.0;      // operands from shared memory to the matrix units
  double l2 = 0.0;       // tiles from the L2 to the units
  double mall = 0.0;     // tiles from the memory-side cache
  double hbm = 0.0;      // traffic that no cache serves, the output's included
  double latency = 0.0;  // K steps that wait for loads: (bytes in flight of a unit) too few for the latency
  double main_loop = 0.0;
  double wave_quantisation = 0.0;  // main loop of the busiest unit less that of the average one
  double epilogue = 0.0;           // accumulators to the output, as far as no other tile hides it
  double split_reduction = 0.0;    // partial sums of split-K or stream-K
  double clearing = 0.0;           // clearing an fp32 output before, and converting it after, atomic split-K
  double clock = 0.0;              // what the main loop loses because the clock falls under load
  double residual = 0.0;           // calibrated (signed): what kernels of this code path take beyond the terms above
  double total = 0.0;
};

// Sets main_loop to (matrix^p + lds^p + l2^p + mall^p + hbm^p + latency^p)^(1/p), p = infinity for exponent <= 0, and
// total to the sum.
void SumTerms(KernelTerms* terms, double exponent);

// compute = matrix + lds + latency share, memory = the rest of the main loop ...: each overlapped term counts in
// proportion to its size, so that the parts add up to the total.
Estimate EstimateOf(const KernelTerms& terms);

// Tiles of the output, over batch and groups: sum of ceil(m / tile_m) ceil(n / tile_n).
double TileCount(const GemmProblem& problem, const GemmKernel& kernel);

// Seconds to clear an fp32 output of M N batch elements and to convert it to `d`: two streaming kernels,
//   2 x 1.2 us + 4 MN / hbm + 4 MN / r + size(d) MN / hbm, r = the L2 rate while the buffer fits half of the L2, else
//   hbm
double ClearAndConvertSeconds(const GemmProblem& problem, const Accelerator& accelerator);

}  // namespace portolan
