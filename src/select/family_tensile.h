#pragma once

#include <array>

#include "select/family.h"

namespace portolan {

// Kernels of the Tensile generator, as hipBLASLt and rocBLAS ship them. All work-groups of a persistent (stream-K) grid
// run the same loop; a unit holds one of them. Seconds, C = matrix clocks of the sustained clock, u = usable units:
//   matrix   iterations x 2 tile_n tile_m tile_k / (matrix_share x sustained rate of a unit)
//   lds      iterations x (lds_exposed x LDS read clocks + staged_exposed x LDS write clocks of operands that go
//   through
//            registers + fixed clocks: loop, single buffer, no local prefetch, transposed reads ...); a hand-scheduled
//            loop (CMS) replaces all of it by one constant a layout
//   mall     fill_exposed x bytes that the dies' L2s draw from the memory-side cache (HBM where there is none): every
//            die reads the rows and the columns of its own block of tiles. WGM and WGMXCC decide how square it is.
//   prologue the first K step of each tile, all units loading at once
//   epilogue the busiest unit's tiles of D, all units writing at once
//   split    partial sums of tiles that several work-groups share, in fp32, through the memory-side cache
//   total  = launch + prologue + ((matrix + lds + mall)^4 + hbm^4)^(1/4) + epilogue + split
// Stream-K grids follow hipBLASLt's rule (ROCm/rocm-libraries shared/origami, streamk.cpp): StreamKGrid below.
//
// Tiles and knobs are BLAS's (column-major): tile_n = mt0, tile_m = mt1; a and b in vector widths, direct-to-LDS and
// hints are BLAS's A (= the row-major B) and B. Extra knobs, -1 = not said:
enum TensileKnob {
  kRowsAtOnce,  // first number of the work-group, "64x4x1": rows of D that a wave column stores together
  kClusterLocalRead,
  kTransposeLds,
  kOneLdsBuffer,
  kStaggerU,
  kStaggerStride,
  kNonTemporalA,
  kNonTemporalB,
  kNonTemporalD,
  kScheduleIterAlg,
  kElementsPerBatchedStore,
  kLdsPadA,
  kLdsPadB,
};

extern const FamilyEntry kTensileFamily;

// The columns of a Tensile catalogue, named as in Tensile's solution names: mt0, mt1, depth_u, mi, wave_tile,
// work_group
// ("64x4x1"), pgr, plr, dtl_a, dtl_b, grvw_a, grvw_b, lrvw, svw, vw_a, vw_b, gsu, streamk, wgm, wgm_xcc, cms, and those
// of the knobs above. Only mt0 and mt1 are needed.
void ReadTensileColumns(CsvRow& row, GemmKernel* kernel);

// Work-groups of a stream-K grid on `units` units: for more tiles than units, the first of tiles / (full + f), f = 0,
// 1/2, 1/8, 1/5, 1/4, 1/3, that fits, full = floor(tiles / units), else all units; for fewer, tiles x the largest of 8,
// 6, 4, 3, 2, 1 that fits and leaves 8 iterations each.
double StreamKGrid(double tiles, double iterations, double units);

// Distinct rows and columns of tiles that the work-groups of one die read at a time (means over the dies), for `grid`
// work-groups at once, each of `parts` consecutive ones sharing a tile along K. chunked: consecutive work-groups lie on
// one die (WGMXCC = dies); otherwise they go round the dies. `swizzle`: tiles along mt1 that are visited together.
struct DiePanels {
  double rows = 0.0, columns = 0.0;  // along mt0 and mt1; parts of K count separately
};
enum class WorkGroupOrder { kRoundRobin, kChunked };
DiePanels PanelsOfDie(double tiles_0, double tiles_1, double grid, double parts, double swizzle, double dies,
                      WorkGroupOrder order);

}  // namespace portolan
