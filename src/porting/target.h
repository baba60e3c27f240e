#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hw/catalogue.h"

namespace portolan {

// The chip and the ROCm release that a port is for.
struct PortTarget {
  std::string gfx;             // "gfx950"
  std::string accelerator_id;  // the accelerator whose numbers are used: "mi350x"
  std::string accelerator_name;
  int wave_size = 64;
  int64_t shared_memory_bytes = 0;  // LDS of one compute unit, the most that one block can have
  int rocm = 603;                   // major x 100 + minor

  bool RocmBefore(int major, int minor) const { return rocm < major * 100 + minor; }
};

// `name` is an accelerator id ("mi350x") or a gfx name ("gfx950": the first accelerator with that isa), `rocm` a
// release such as "6.3". Errors list what is known: a chip that is not AMD's, an unknown name, a release outside
// 5.2 ... 7.9.
Result<PortTarget> FindPortTarget(const Catalogue& catalogue, const std::string& name, const std::string& rocm);

}  // namespace portolan
