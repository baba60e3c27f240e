#include "porting/occupancy.h"

#include <algorithm>

namespace portolan {
namespace {

// CDNA 2, 3 and 4 instruction set guides, and LLVM 22's occupancy(8, 8, 512, ...) in the remark for gfx942 and gfx950:
// 8 waves a SIMD, 4 SIMDs a unit, vector registers in groups of 8, 800 scalar registers a SIMD.
constexpr int64_t kMostWaves = 8;
constexpr int64_t kSimdsPerUnit = 4;
constexpr int64_t kVectorGranule = 8;
constexpr int64_t kScalarRegisters = 800;
constexpr int64_t kBytesPerRegister = 4;

}  // namespace

Occupancy OccupancyOf(const KernelResources& kernel, int block_threads, const PortTarget& target) {
  const int64_t lanes = std::max(1, target.wave_size);
  const int64_t file = target.register_bytes / (kSimdsPerUnit * lanes * kBytesPerRegister);
  const int64_t taken = (std::max(1, kernel.vector_registers) + kVectorGranule - 1) / kVectorGranule * kVectorGranule;
  Occupancy result = {static_cast<int>(kMostWaves), "waves"};
  const auto limit = [&result](int64_t waves, const char* by) {
    if (waves < result.waves) result = {static_cast<int>(std::max<int64_t>(0, waves)), by};
  };
  if (file > 0) limit(file / taken, "vector registers");
  limit(kScalarRegisters / std::max(1, kernel.scalar_registers), "scalar registers");
  if (kernel.shared_bytes > 0) {
    const int64_t threads = block_threads > 0 ? block_threads : std::max(1, kernel.largest_block);
    const int64_t waves_per_block = (threads + lanes - 1) / lanes;
    const int64_t blocks = target.shared_memory_bytes / kernel.shared_bytes;
    // The busiest SIMD holds the rounded-up share of the unit's waves.
    if (blocks < kMostWaves * kSimdsPerUnit) {
      limit((blocks * waves_per_block + kSimdsPerUnit - 1) / kSimdsPerUnit, "shared memory");
    }
  }
  return result;
}

}  // namespace portolan
