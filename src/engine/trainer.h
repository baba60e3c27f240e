#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda_network.h"
#include "engine/job.h"
#include "engine/network.h"

namespace portolan {

enum class ReportKind { kNote, kStep, kEval };

struct StepReport {
  ReportKind kind = ReportKind::kStep;
  std::string note;
  int64_t step = 0;
  double loss = 0, auc = 0, normalized_entropy = 0;  // of the interval, or of the evaluation
  double learning_rate = 0;
  double gradient_norm = 0;  // of the last step, 0 without clipping
  double step_ms = 0, samples_per_s = 0;
  double wait_share = 0;  // of the time, waiting for data
};

struct TrainSummary {
  int64_t steps = 0;
  int64_t samples = 0;
  double seconds = 0;  // of the steps, evaluation and checkpoints left out
  double eval_loss = 0, eval_auc = 0, eval_normalized_entropy = 0;
  std::vector<double> losses;  // of every step of this call
  StepProfile profile;         // Job::profile_steps
  HostCacheCounts host_cache;  // of tables in host memory, if there are any
};

// How a job computes, on the device that it asks for. `notes` as OptionsFromRecipe.
Result<CudaOptions> ComputedAs(const Job& job, std::vector<std::string>* notes);

// Memory of this machine, or of its GPU, that a run may take, in bytes, and the job's need by part.
struct MemoryForecast {
  double needed = 0, available = 0;
  double host_bytes = 0;  // of tables of a GPU's network in host memory
  std::string device;     // the GPU and its driver; empty for the CPU
  std::vector<std::pair<std::string, double>> parts;
  std::string what_would_fit;  // empty when it fits
};
Result<MemoryForecast> ForecastMemory(const Job& job);

// Learning rates and scaling of a step of the job, counted from 1.
UpdateSettings SettingsAtStep(const Job& job, int64_t step);

// Trains a job: reads ahead, steps, reports, evaluates, writes checkpoints, and goes on from the newest checkpoint of
// the job's folder. Blocks. Errors: what the job or its data says wrong, a model that does not fit in memory (found
// before anything is allocated), a loss that is not finite (the parameters of the last good step are kept in the
// checkpoints), a checkpoint that cannot be written.
Result<TrainSummary> Train(const Job& job, const std::function<void(const StepReport&)>& report);

}  // namespace portolan
