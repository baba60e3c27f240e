#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/job.h"
#include "loop/cpu_changes.h"
#include "loop/price_cuda.h"

// `calibrate` and `optimize` on one NVIDIA GPU.
namespace portolan {

// Times of the kernels of GPU 0 and of a small step.
Result<CudaCalibration> CalibrateCuda(const std::function<void(const std::string&, double)>& progress);
// <folder>/calibration/cuda.yaml.
Status WriteCudaCalibration(const CudaCalibration& calibration, const std::string& folder);
Result<CudaCalibration> ReadCudaCalibration(const std::string& folder);
// The folder's where it is of the GPU at hand, else measured and kept.
Result<CudaCalibration> CudaCalibrationOfThisMachine(const std::string& folder,
                                                     const std::function<void(const std::string&, double)>& progress);

// A recipe in training on the GPU, whose steps are timed in rounds.
class TimedCudaNetwork {
 public:
  static Result<std::unique_ptr<TimedCudaNetwork>> Make(const Job& job, const Recipe& recipe);
  // Reads `steps` batches into device memory, trains on them and keeps the mean time of a step. Error: the loss is not
  // finite.
  Status Round(int64_t steps);
  double StepSeconds() const;  // median of the rounds but the first, which warms up
  double Spread() const;       // (slowest - fastest) / median
  // Mean loss of the last round, of predictions made before their batch was trained on.
  double Loss() const { return loss_; }
  const NetworkPlan& plan() const { return network_->plan(); }
  // Operation by operation, over more steps.
  Result<StepProfile> Profile(int steps);

 private:
  explicit TimedCudaNetwork(const Job& job) : job_(job) {}
  const Job& job_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<TrainableNetwork> network_;
  std::vector<float> logits_;
  std::vector<double> rounds_;
  double loss_ = 0;
  int64_t step_ = 0;
};

struct MeasuredCudaRecipe {
  Recipe recipe;
  CudaStepPrice predicted;
  double measured_s = 0, spread = 0, samples_per_s = 0, loss = 0;
  double Error() const { return predicted.step_s / measured_s - 1; }
};
struct CudaOptimizeResult {
  MeasuredCudaRecipe baseline, codesigned;
  std::vector<PricedChange> changes;
  int priced = 0;
  int64_t samples = 0;
  double Speedup() const { return baseline.measured_s / codesigned.measured_s; }
  double PredictedSpeedup() const { return baseline.predicted.step_s / codesigned.predicted.step_s; }
};

// What a plain port of the job runs on the GPU: fp32 rows and activations, tf32 products (a framework's own default on
// this hardware is fp32 or tf32; tf32 is the faster one).
Recipe PortedCudaRecipe(const Recipe& recipe);
// Settings that differ from `recipe`, as ProposeCpuChanges.
std::vector<CpuChange> ProposeCudaChanges(const Model& model, const Recipe& recipe, const std::set<std::string>& allow);
Result<CudaStepPrice> PriceCudaRecipe(const Job& job, const Recipe& recipe, const std::vector<Batch>& batches,
                                      const CudaCalibration& calibration);
// Batches of the job's own data in host memory, for PriceCudaRecipe.
Result<std::vector<Batch>> ReadSomeBatches(const Job& job, int64_t count);

// Plans from the calibration, then trains the ported and the co-designed recipe in turns for the job's steps, in at
// least three rounds. Blocks. Errors: the job's own, two models that do not fit in memory.
Result<CudaOptimizeResult> OptimizeCuda(const Job& job, const CudaCalibration& calibration, int64_t rounds,
                                        const std::function<void(const std::string&, double)>& progress);

}  // namespace portolan
