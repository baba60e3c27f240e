#pragma once

#include "select/family.h"

namespace portolan {

// Plain Triton matmul kernels, and others of the same build: one tile of D a program, operands loaded by all warps
// through `stages` buffers in shared memory, programs visited in groups of 8 rows of tiles.
// Fields read: tile_m, tile_n, tile_k, waves (4 or 8), stages, split_k, reduction (kAtomic for split_k > 1), swizzle
// (rows of tiles visited together; 0 = 8). Constants: one class of the engine in tile_model.h, by its names.
// Factor keys: tile=MxN, pipe=K/stages, warps=MxN/w, cfg=MxNxK/w/stages.
// Supported: 128 threads or more, shared memory and accumulators that fit.
extern const FamilyEntry kTritonFamily;

}  // namespace portolan
