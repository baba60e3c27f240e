#pragma once

#include <optional>

#include "select/family.h"

namespace portolan {

// Algorithms as cublasLtMatmulAlgoGetHeuristic enumerates them. Fields read: algo, tile_id, stages_id, split_k,
// reduction_id, custom, cluster_id, rank (SetCublasLtIds fills tile_m, tile_n, stages, cluster and reduction from the
// ids). Four classes of code paths, each with the constants of tile_model.h under its name:
//   nvjet.    algo 66: bulk copies (TMA), warp-specialised, clusters, persistent (sm_90 and later)
//   cluster.  algo 43: the same for tf32
//   issued.   older kernels: every warp loads (algos 20 to 24, 55, 63); the only ones for misaligned rows
//   other.    algorithms without a tile: vector products and small batched ones
// Factor keys: algo=A, rows=A/r, columns=A/c, tile=A/T, custom=A/C, cluster=A/S, stages=A/S, reduction=A/R/P,
// swizzle=A/W, layout=A/L, tile=A/T/L, cluster=A/S/L, path=A/T/C/S, grid=A/S/U, rank=R. The rank is the library's own
// order: a prior that is free at run time. extra[0] = waves x 132 as the library reports it, for algo 43 the units of
// its persistent grid (U): code paths that differ in nothing else. On a device whose clusters do not fill all units the
// grid runs on fewer: kClusterUnits.
extern const FamilyEntry kCublasLtFamily;

struct TileSides {
  int rows, columns;  // of column-major D: rows run along N of the row-major problem, columns along M
};
// cublasLtMatmulTile_t (cublasLt.h of CUDA 13.0) as sides; nullopt for 0 (undefined) and unknown numbers.
std::optional<TileSides> CublasLtTile(int tile_id);
// cublasLtClusterShape_t as work-groups along rows and columns of column-major D; 1 x 1 for 0 and unknown numbers.
TileSides CublasLtCluster(int cluster_id);
// cublasLtMatmulStages_t: buffers of the operand pipeline; 0 = as many as fit ("AUTO") or undefined.
int CublasLtStages(int stages_id);
// Fills tile, stages, cluster and reduction from the ids.
void SetCublasLtIds(GemmKernel* kernel);

}  // namespace portolan
