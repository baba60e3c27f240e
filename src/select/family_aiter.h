#pragma once

#include <string>
#include <string_view>

#include "select/family.h"

namespace portolan {

// Kernels of the AMD inference libraries whose tuned-GEMM tables aiter keeps: Composable Kernel (classic and tile),
// FlyDSL, hand-written assembly, opus, and the hipBLASLt, Triton and torch kernels that compete with them. Weights are
// stored [N, K] (layout TN), possibly pre-shuffled; operands may carry scales.
// A kernel is known by its name; AiterKernelFromName reads tile, split, waves and variant from it. Constants: the
// engine of tile_model.h in two classes, kernels that split K and the others ("split_" before the engine's names).
// Factor keys: code=<generation>, scale=<quant>/<generation>, tile=<generation>/MxNxK, cfg=<all of the name>.
//
// Extra knobs, -1 = not said:
enum AiterKnob {
  kGeneration,   // index in AiterGenerations()
  kScales,       // 0 none, 1 a token and channel, 2 blocks of 128, 3 microscaling blocks of 32
  kPreshuffled,  // 1: weights pre-shuffled for the matrix instruction
  kVariantA,     // variant digits of the name, library by library
  kVariantB,
  kWaveRows,
};

// Library and version of a kernel as its name tells them: "flydsl_gemm4", "ck_blockscale_v1" ...
// The last one, "other", stands for names that nothing matches.
std::span<const char* const> AiterGenerations();

// Fills tile, split_k, waves, stages and the extra knobs from a kernel's name and the library that the table names.
// `split` is the table's split_k column (0 = none; blockscale CK kernels: log2 of the parts). What a name does not hold
// stays as it is.
void AiterKernelFromName(std::string_view library, const std::string& name, int split, GemmKernel* kernel);

extern const FamilyEntry kAiterFamily;

}  // namespace portolan
