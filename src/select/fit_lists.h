#pragma once

#include <span>

#include "select/calibrate.h"

namespace portolan {

struct FitListsOptions {
  int steps = 25;           // of the damped Gauss-Newton iteration
  double reach = 0.12;      // kernels weigh exp(-log(t / best) / reach)
  double common = 0.05;     // share of a list's common error that counts: clocks and harnesses differ between lists
  double saturation = 0.3;  // errors beyond this count little: tanh(z / saturation)
  double prior = 1e-7;      // weight of the squared distance of free constants from their uncalibrated values
};

// Fits a family's constants (no factors) to the differences inside each list: what a choice needs, whatever clock or
// harness a list was timed with. Least squares by Levenberg and Marquardt over logarithms of the positive constants; no
// random numbers. For families whose terms are rich and whose lists are long (Tensile).
FamilyConstants FitLists(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                         std::span<const CalibrationRow> rows, const FitListsOptions& options);

}  // namespace portolan
