#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "select/catalogue_csv.h"
#include "select/family.h"

namespace portolan {

// Writes problem_id,kernel_id,predicted_s for every pair of a problem and a kernel of its compute type, or, where the
// catalogue ties kernels to problems, for the pairs it ties (a problem that it ties to nothing meets all kernels,
// without their rank). Seconds with seven significant digits. Kernels whose limits the problem breaks are scored all
// the same: the list says that they exist. Returns the number of predictions.
Result<int64_t> ScoreLists(const ProblemList& problems, const KernelList& kernels, const Accelerator& accelerator,
                           const std::vector<FamilyConstants>& constants, const std::string& out_path);

}  // namespace portolan
