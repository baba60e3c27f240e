#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/job.h"
#include "loop/calibration.h"
#include "loop/cpu_changes.h"

namespace portolan {

struct OptimizeOptions {
  int64_t rounds = 5;  // of each, in turns; at least 3
  std::function<void(const std::string& what, double done)> progress;
};

// One recipe of the job, predicted and measured.
struct MeasuredRecipe {
  Recipe recipe;
  StepPrice predicted;
  double measured_s = 0;  // a step: median over the rounds of each round's median
  double spread = 0;      // (slowest - fastest round) / median
  std::vector<std::pair<std::string, double>> measured_phases;
  double samples_per_s = 0;
  double auc = 0, ne = 0;  // at the end, on the eval split or on what was predicted last before it was trained on
  double Error() const { return predicted.Total() / measured_s - 1; }
};

// A change, in the order taken, and alone: the ported recipe with this change only against the ported recipe.
struct MeasuredChange {
  PricedChange priced;
  double alone_predicted = 0, alone_measured = 0;  // factors of the step time, above 1 is a gain
};

struct OptimizeResult {
  MeasuredRecipe baseline, codesigned;
  std::vector<MeasuredChange> changes;
  std::vector<PricedChange> not_allowed;  // CpuPlan's
  int priced = 0;
  int64_t samples = 0;    // that both were trained on
  ClassTimes slowdown{};  // of the machine against its calibration, median over the rounds; predictions include it
  bool has_eval = false;  // auc and ne are of the eval split
  double Speedup() const { return baseline.measured_s / codesigned.measured_s; }
  double PredictedSpeedup() const { return baseline.predicted.Total() / codesigned.predicted.Total(); }
};

// What can be refused of a job before this machine is measured for it: opens its data and plans its network.
Status CheckOptimizable(const Job& job);

// The whole loop on this CPU: plans from the calibration, measures every change alone, then trains the ported and the
// co-designed recipe on the same batches in turns, for the job's steps. Reads no clock but for the steps themselves:
// batches are in memory before they are trained on. Blocks. Errors: the job's own, data that ends within one batch, two
// models that do not fit in memory.
Result<OptimizeResult> Optimize(const Job& job, const Calibration& calibration, const OptimizeOptions& options);

}  // namespace portolan
