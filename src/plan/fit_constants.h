#pragma once

#include <string>
#include <vector>

#include "plan/validate.h"

namespace portolan {

// One constant of StepConstants that a fit may move: its prior and how far (a factor, one standard deviation) the
// micro-benchmark behind the prior lets it go.
struct FittedConstant {
  const char* name;
  double StepConstants::*factor;  // null for the step overhead
  double prior;
  double spread;
  const char* source;  // of the prior
};
const std::vector<FittedConstant>& FittedConstants();

// A published step whose graph is built once and timed again and again.
struct FitPoint {
  std::string id;
  std::string accelerator;
  Seconds measured;
  Recipe recipe;
  Cluster cluster;
  StepGraph graph;
};
// The entries with `use: fit`.
Result<std::vector<FitPoint>> FitPoints(const std::vector<ValidationEntry>& entries, const Catalogue& catalogue,
                                        const std::vector<std::string>& data_dirs);

// Maximum a posteriori: minimises, over the logarithms of the constants,
//   sum over points (log(predicted / measured) / 0.05)^2 + sum over constants (log(c / prior) / log(spread))^2
// by pattern search (Hooke and Jeeves, J. ACM 8(2), 1961). The 5 % is what published systems of one configuration
// differ by. Deterministic.
StepConstants FitStepConstants(const std::vector<FitPoint>& points);

// Predicted over measured, minus one.
double FitError(const FitPoint& point, const StepConstants& constants);

// For each accelerator among the points: the worst error on its points of constants fitted to the others.
struct LeaveOneOut {
  std::string accelerator;
  std::vector<std::pair<std::string, double>> errors;  // point id, relative error
};
std::vector<LeaveOneOut> FitLeavingEachOut(const std::vector<FitPoint>& points);

}  // namespace portolan
