#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "select/csv.h"
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

// Where a kernel stands on a problem, each from 0 to 1: what the calibrated factors of a code path may lean on.
//   depth  = K steps / (K steps + 16);  fill = waves / (waves + 1);  traffic = hbm / (hbm + busiest unit)
//   tail   = share of the rounds' places that the last wave leaves empty
//   breadth = tiles along N / (tiles along N + 4);  height = tiles along M / (tiles along M + 4)
struct KernelRegime {
  double depth = 0.0, fill = 0.0, traffic = 0.0, tail = 0.0, breadth = 0.0, height = 0.0;
};

// What the slopes of a factor are multiplied by, in this order: depth, fill, traffic, tail, the squares of the
// first three, breadth and height, under the suffixes ":depth" ... ":height" of its key.
constexpr int kSlopeCount = 9;
extern const std::array<const char*, kSlopeCount> kSlopeSuffixes;
inline std::array<double, kSlopeCount> SlopeMultipliers(const KernelRegime& r) {
  return {r.depth,   r.fill,  r.traffic, r.tail, r.depth * r.depth, r.fill * r.fill, r.traffic * r.traffic,
          r.breadth, r.height};
}

// Appends `key` and, for each of `slopes`, the key of its slope (see FamilyModel::FactorKeys).
void AppendFactorKeys(const std::string& key, std::span<const char* const> slopes, std::vector<std::string>* keys);

// Kernels of one catalogue made ready for scoring. ScoreAll is the hot path: no allocation, no lookups by name.
class KernelScorer {
 public:
  virtual ~KernelScorer() = default;
  // seconds[i] = total of kernel i on `problem`; infinity where the kernel cannot run it.
  virtual void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const = 0;
  // The terms of kernel i. No allocation either.
  virtual KernelTerms Terms(const GemmProblem& problem, size_t i) const = 0;
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
  // The kernels made ready; the default asks Supports and Score for each. A family's own scorer must agree with Score
  // to the last bit.
  virtual std::unique_ptr<KernelScorer> Prepare(std::span<const GemmKernel> kernels) const;

  // For calibration: the factor keys of a code path, most general first (a factor "key" is added to the logarithm of
  // the total; "key:depth" and the like are multiplied by the regime first), and the regime itself. A family without
  // factors leaves both as they are.
  virtual std::vector<std::string> FactorKeys(const GemmProblem& problem, const GemmKernel& kernel) const;
  virtual KernelRegime Regime(const GemmProblem& problem, const GemmKernel& kernel) const;
};

// How calibration fits a family: times first, then the choice, with factors (FitFamily itself), or only the differences
// inside lists, constants alone (FitLists).
enum class FitMethod { kTimesThenChoice, kInsideLists };

// One registered family: what calibration and Selector need. all_families.cc lists them.
struct FamilyEntry {
  KernelFamily family;
  std::span<const ConstantSpec> specs;
  std::unique_ptr<FamilyModel> (*make)(const Accelerator& accelerator, const FamilyConstants& constants);
  // A CSV with this column lists kernels of the family (select/catalogue_csv.h), and `read` takes its other columns.
  const char* marker_column;
  void (*read)(CsvRow& row, GemmKernel* kernel);
  FitMethod fit = FitMethod::kTimesThenChoice;
};
// Null for a family that is not registered.
const FamilyEntry* FindFamily(KernelFamily family);

// The uncalibrated constants of a family.
FamilyConstants InitialConstants(KernelFamily family, DType compute);

}  // namespace portolan
