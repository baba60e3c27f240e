#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "select/selector.h"
#include "units/dtype.h"

namespace portolan {

// The kernel catalogues in <dir>/kernels/<library>_<isa>[_<dtype>].csv that fit the device: those of its instruction
// set, else of the nearest one of the vendor (sm_100 takes sm_90, gfx950 takes gfx942). A file with a dtype in its name
// holds kernels of that compute type only; fp8_e5m2 takes those of fp8_e4m3, fp16 those of bf16. An error when nothing
// fits.
Result<std::vector<std::string>> FindKernelCatalogues(const std::vector<std::string>& data_dirs,
                                                      const Accelerator& accelerator, DType compute);

// The kernels of those files, named "<family>:<kernel_id>", and what a reader must know about them.
struct ShippedKernels {
  KernelCatalogue catalogue;
  std::vector<std::string> notes;
};
// Where no file holds the type, the tiles of the vendor's bf16 catalogues of a tile language stand in (Triton on
// NVIDIA, Tensile on AMD), each with as many bytes of K a step, and a note says so. Another note says when the chip has
// no matrix instruction for the type, and at which rate it is priced (GemmRate).
Result<ShippedKernels> LoadShippedKernels(const std::vector<std::string>& data_dirs, const Accelerator& accelerator,
                                          DType compute);

// The kernels of one family, in order.
KernelCatalogue KernelsOf(const KernelCatalogue& catalogue, KernelFamily family);

}  // namespace portolan
