#pragma once

#include <string>

#include "commands.h"
#include "engine/job.h"

namespace portolan {

// `calibrate --device cuda` and `optimize` of a job with device cuda. `folder`: of the calibration, empty: it is not
// kept.
Result<int> RunCalibrateCuda(const std::string& folder, const GlobalOptions& global);
struct OptimizeCudaOptions {
  std::string folder;
  int64_t rounds = 5;
  bool recalibrate = false;
};
Result<int> RunOptimizeCuda(const Job& job, const OptimizeCudaOptions& options, const GlobalOptions& global);

}  // namespace portolan
