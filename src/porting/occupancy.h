#pragma once

#include <cstdint>

#include "porting/code_object.h"
#include "porting/target.h"

namespace portolan {

// How many waves of a kernel fit a SIMD at once, and what keeps others out.
struct Occupancy {
  int waves = 0;           // of a SIMD; 0 when not even one block fits
  const char* limit = "";  // "waves", "vector registers", "scalar registers" or "shared memory"
};

// waves = min(8, registers / taken, 800 / scalar, blocks x waves of a block / 4), where `registers` are 32-bit vector
// registers a lane of a SIMD (512 on CDNA 2 to 4: register_bytes_per_unit / 4 SIMDs / 64 lanes / 4 bytes), `taken` is
// rounded up to 8, and blocks = LDS of the unit / LDS of a block. `block_threads` is the block that will be launched;
// 0 stands for the largest that the kernel was compiled for.
Occupancy OccupancyOf(const KernelResources& kernel, int block_threads, const PortTarget& target);

}  // namespace portolan
