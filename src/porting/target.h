#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hw/catalogue.h"

namespace portolan {

// The chip and the ROCm release that a port is for.
struct PortTarget {
  std::string gfx;             // "gfx950"; "sm_90" of an NVIDIA chip
  bool to_cuda = false;        // HIP sources become CUDA ones
  std::string accelerator_id;  // the accelerator whose numbers are used: "mi350x"
  std::string accelerator_name;
  bool launch_calls = false;  // launches become calls of hipLaunchKernelGGL
  int wave_size = 64;
  int64_t shared_memory_bytes = 0;  // LDS of one compute unit, the most that one block can have
  int64_t register_bytes = 0;       // vector registers of one compute unit
  double fp32_flops = 0;            // peak of the matrix units in float32, and in TF32 where there is one
  double tf32_flops = 0;
  double bf16_flops = 0;
  int rocm = 603;  // major x 100 + minor

  bool RocmBefore(int major, int minor) const { return rocm < major * 100 + minor; }
};

// `name` is an accelerator id ("mi350x") or a gfx name ("gfx950": the first accelerator with that isa), `rocm` a
// release such as "6.3". An NVIDIA chip (id or sm_XX) turns the port round: HIP to CUDA. Errors list what is known: any
// other chip, an unknown name, a release outside 5.2 ... 7.9.
Result<PortTarget> FindPortTarget(const Catalogue& catalogue, const std::string& name, const std::string& rocm);

}  // namespace portolan
