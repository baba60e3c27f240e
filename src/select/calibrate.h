#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "select/family.h"

namespace portolan {

// One timed kernel.
struct CalibrationRow {
  GemmProblem problem;
  GemmKernel kernel;
  double seconds = 0.0;  // as charged: atomic split-K with its clearing and conversion
  int list = 0;          // rows of one list compete for one problem
  bool judged = true;    // lists that count in the regret (others only teach)
};

// Timed rows of a CSV in the columns of catalogue_csv.h with `us_med` (or `us`) as the time; rows that the family
// cannot time alone (atomic split-K) are charged ClearAndConvertSeconds.
Result<std::vector<CalibrationRow>> ReadCalibrationRows(const std::string& path, DType compute,
                                                        const Accelerator& accelerator);

struct CalibrationOptions {
  double ridge = 2e-3;  // weight of the squared factors; slopes twice
  double prior = 1e-3;  // weight of the squared distance of constants from their uncalibrated values (logs)
  int coarse_steps = 150, fine_steps = 200;
};

// Fits the family's constants and factors to the rows: first the times, then the choice. The loss is
//   0.5 E|z|^1.5 + 0.5 E z_c^2        (coarse, constants alone and then with factors: z = log(predicted / measured),
//   z_c = z less its list's mean; slow
//                                      kernels count less, by exp(-2 log(t / best)))
//   0.05 E|z|^1.5 + 0.5 E z_c^2 + E r  (fine: r = expected log(chosen / best) when kernels are chosen with probability
//                                      proportional to predicted^(-1/0.03))
// plus the penalties of the options, by Adam with a fixed schedule; no random numbers, so that a run repeats exactly.
// A family whose FitMethod is kInsideLists is fitted by FitLists (fit_lists.h) instead.
FamilyConstants FitFamily(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                          std::span<const CalibrationRow> rows, const CalibrationOptions& options);

struct RegretSummary {
  int n = 0;
  double geomean = 0.0, p10 = 0.0, worst = 0.0;  // of best time / chosen time over lists
  double median_error = 0.0;                     // |predicted / measured - 1| of each list's fastest kernel
};
// What choosing the smallest of `predicted` costs on the judged lists.
RegretSummary Regret(std::span<const CalibrationRow> rows, std::span<const double> predicted);

// Predictions for every row from constants that were fitted without its shape: problems are dealt to `folds` parts by
// sizes (all layouts of one M, N, K, batch together).
std::vector<double> HeldOutPredictions(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                                       std::span<const CalibrationRow> rows, int folds,
                                       const CalibrationOptions& options);

}  // namespace portolan
