#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "units/dtype.h"

namespace portolan {

// Libraries whose kernels are described. One file family_<name>.cc each holds the score of its kernels.
enum class KernelFamily : uint8_t { kTriton, kCublasLt, kTensile, kAiter, kCpu };
constexpr int kKernelFamilyCount = 5;
const char* KernelFamilyName(KernelFamily family);
std::optional<KernelFamily> ParseKernelFamily(std::string_view name);

// How the parts of a split product are put together.
enum class SplitReduction : uint8_t {
  kNone,       // one part
  kAtomic,     // fp32 atomics into a cleared fp32 output, then a conversion pass
  kInPlace,    // one part after the other adds to the output
  kWorkspace,  // partial sums go through a workspace, added by the last part or by a second kernel
};

// One candidate. Plain data for all families; -1 (or 0 where 0 has no meaning) = the catalogue does not say. Tiles are
// in elements of row-major D[M,N]: `tile_m` along M, `tile_n` along N (a BLAS macro tile mt0 x mt1 is tile_n = mt0,
// tile_m = mt1).
struct GemmKernel {
  KernelFamily family = KernelFamily::kTriton;
  DType compute = DType::kBf16;  // input format of the matrix instruction

  // All families.
  int16_t tile_m = 0, tile_n = 0, tile_k = 0;
  int16_t instruction_m = 0, instruction_n = 0, instruction_k = 0;
  int16_t waves = 0;                         // warps or waves of a work-group
  int16_t wave_tile_m = 0, wave_tile_n = 0;  // Tensile: instructions a wave holds along M and N
  int16_t stages = 0;                        // depth of the operand pipeline (PrefetchGlobalRead on AMD)
  int16_t cluster_m = 1, cluster_n = 1;      // work-groups that share operands by multicast
  int16_t split_k = 1;                       // parts of K; 0 and -1 = not set, the kernel chooses
  SplitReduction reduction = SplitReduction::kNone;
  int8_t stream_k = 0;        // 0 = no; otherwise the library's stream-K mode
  int8_t persistent = 0;      // 1: as many work-groups as units, each walks over tiles
  int8_t hand_scheduled = 0;  // 1: main loop in hand-ordered assembly (Tensile CMS, aiter asm)
  int16_t swizzle = 0;        // Triton GROUP_M, cuBLASLt swizzle id, Tensile work-group mapping (WGM)
  int16_t xcd_mapping = 0;    // Tensile WGMXCC

  // Vector widths in elements: global read, local read, store and register.
  int8_t global_read_a = 0, global_read_b = 0, local_read = 0, store_vector = 0, vector_a = 0, vector_b = 0;
  int8_t direct_to_lds_a = -1, direct_to_lds_b = -1;
  int8_t local_prefetch = -1;  // PrefetchLocalRead

  // cuBLASLt attributes as cublasLtMatmulAlgoConfigGetAttribute gives them.
  int16_t algo = -1, tile_id = -1, stages_id = -1, reduction_id = -1, custom = -1, inner = -1, cluster_id = -1;
  // Place in the list that the library's own heuristic proposes for this very problem; -1 = not tied to a problem. A
  // prior that costs no measurement.
  int16_t rank = -1;

  // Knobs of one family, in the order that family_<name>.h documents; -1 = not said.
  std::array<int16_t, 16> extra = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  int32_t source_id = -1;  // number under which the library knows the kernel (solution index, kernel_id)

  bool operator==(const GemmKernel&) const = default;
};

// Drops what a library's list says about one problem only (rank, wave count), so that the kernel stands for itself.
void ForgetProblem(GemmKernel* kernel);

}  // namespace portolan
