#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/catalogue.h"
#include "select/calibrate.h"
#include "select/family.h"
#include "select/measured_lists.h"

namespace portolan {

// What the selector's choices cost on measured lists, 1 = the best kernel always chosen.
struct RegretSet {
  std::string name;
  std::string constants;  // where the constants come from: "fitted to these lists", "uncalibrated"
  RegretSummary all;
  std::map<std::string, RegretSummary> classes;  // ProblemClass -> the same over its problems
  std::vector<double> ratios;                    // best / chosen time of each list, ascending
};

// Error of the kernel-blind model (cost/gemm.h) on best times.
struct AbsoluteSet {
  std::string name;
  int n = 0;
  double bias = 0.0, median = 0.0, p90 = 0.0;  // bias: median of predicted / measured - 1; the others of its size
};

struct RegretReport {
  std::vector<RegretSet> sets;
  std::vector<AbsoluteSet> absolute;
};

// The class of a problem, the first that fits; M N K are row-major sizes, tiles those of 256 x 256:
//   batched     several products
//   skinny      min(M, N) <= 64
//   deep        K >= 8 max(M, N): the output is small against the sum
//   few_tiles   fewer than 64 tiles: units idle unless K is split
//   misaligned  a row that is no multiple of 16 bytes
//   large       2 M N K >= 1e12 flops
//   medium      the rest
const char* ProblemClass(const GemmProblem& problem);

// Best / chosen time over the judged lists of `rows`, in all and by class of problem.
RegretSet ScoreRegret(const std::string& name, std::span<const CalibrationRow> rows, std::span<const double> predicted);

// The chip as if nothing had been measured on it: its data sheet, and for every sustained rate and fixed time what the
// relative keeps of its own peak (matrix rates of peak_matrix; HBM and the memory-side cache of hbm_peak; L2 of units x
// clock).
Result<Accelerator> WithheldAccelerator(const Catalogue& hardware, const std::string& id,
                                        const std::string& relative_id);

// Every data set under `data_dir` (its folder gemm/): the H200 lists, the Tensile sweep with `constants` and again with
// uncalibrated ones on WithheldAccelerator (nothing of gfx950), aiter's tables (lists of 4 kernels or more, pooled and
// by part), and the absolute errors. An error names the file that is missing or wrong.
Result<RegretReport> ScoreMeasuredData(const std::string& data_dir, const Catalogue& hardware,
                                       const std::vector<FamilyConstants>& constants);

// {"schema", "data_sets": [{name, n, geomean, p10, worst, constants, classes: [{name, n, geomean, p10, worst}]}],
//  "absolute": [{name, n, bias, median_error, p90_error}]}
nlohmann::ordered_json RegretJson(const RegretReport& report);
std::string ShowRegret(const RegretReport& report);

}  // namespace portolan
