#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "select/kernel.h"
#include "select/problem.h"
#include "select/terms.h"

namespace portolan {

// One number that calibration may move: its uncalibrated value (from the data sheet's physics), the bounds inside which
// calibration searches, and what it means, with its unit.
struct ConstantSpec {
  const char* name;
  double initial;
  double low, high;
  const char* meaning;
};

// The constants of one family on one chip: `values` in the order of the family's ConstantSpecs, and `factors`, log
// time factors of single code paths keyed by what the family documents (a tile, an algorithm id). Written by
// tools/calibrate_gemm into data/constants/gemm_<family>_<chip>_<dtype>.yaml, with date, device, inputs and command.
struct FamilyConstants {
  KernelFamily family = KernelFamily::kTriton;
  DType compute = DType::kBf16;
  std::string accelerator;  // chip that the values were fitted on; empty = uncalibrated
  std::string date, command, inputs;
  std::vector<double> values;
  std::map<std::string, double> factors;
};

// Scores the kernels of one family on one accelerator. The constructor works out everything that does not depend on the
// problem, so that Score touches no map, string or heap. Const and thread-safe.
class FamilyModel {
 public:
  virtual ~FamilyModel() = default;

  // Whether the kernel can run the problem at all (dtype, alignment, shared memory).
  virtual bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const = 0;
  // The terms of `kernel` on `problem`, seconds. No allocation.
  virtual KernelTerms Score(const GemmProblem& problem, const GemmKernel& kernel) const = 0;
  // seconds[i] = Score(problem, kernels[i]).total, or infinity where not supported: the hot path. Families override it
  // to work out the problem's part once for all kernels; it must agree with Score to the last bit.
  virtual void ScoreAll(const GemmProblem& problem, std::span<const GemmKernel> kernels,
                        std::span<double> seconds) const;
};

// One registered family: what calibration and Selector need. all_families.cc lists them.
struct FamilyEntry {
  KernelFamily family;
  std::span<const ConstantSpec> specs;
  std::unique_ptr<FamilyModel> (*make)(const Accelerator& accelerator, const FamilyConstants& constants);
};
const FamilyEntry& FindFamily(KernelFamily family);

// The uncalibrated constants of a family.
FamilyConstants InitialConstants(KernelFamily family, DType compute);

}  // namespace portolan
