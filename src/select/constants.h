#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "select/family.h"

namespace portolan {

// Reads one file of calibrated constants: keys family, compute, accelerator, date, command, inputs, held_out (text, for
// people), values (name: number; a name that the family lacks is refused, one that is missing takes its uncalibrated
// value) and factors (key: number).
Result<FamilyConstants> ReadFamilyConstants(const std::string& path);
// Every <dir>/constants/gemm_*.yaml, in order of name. A directory without any gives none.
Result<std::vector<FamilyConstants>> LoadGemmConstants(const std::vector<std::string>& data_dirs);

// Writes the file that ReadFamilyConstants reads; `held_out` is one line about the errors on shapes left out.
Status WriteFamilyConstants(const FamilyConstants& constants, const std::string& held_out, const std::string& path);

// The constants for a family, chip and compute type out of `all`: its own; else the same type on another chip of the
// vendor; else another type of at most the same width, on the chip first; else the uncalibrated ones.
FamilyConstants PickConstants(const std::vector<FamilyConstants>& all, KernelFamily family, DType compute,
                              const Accelerator& accelerator);

}  // namespace portolan
