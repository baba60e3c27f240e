#include "loop/optimize_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "engine/trainer.h"
#include "loop/turns.h"

namespace portolan {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr double kLeastGain = 0.002;  // of a step

}  // namespace

Result<std::unique_ptr<TimedCudaNetwork>> TimedCudaNetwork::Make(const Job& job, const Recipe& recipe) {
  std::unique_ptr<TimedCudaNetwork> timed(new TimedCudaNetwork(job));
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const CudaOptions options, CudaOptionsFromRecipe(job.model, recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(NetworkPlan plan, PlanNetwork(job.model, options.network));
  const BatchSchema schema = plan.Schema(job.model);
  PORTOLAN_ASSIGN_OR_RETURN(std::unique_ptr<Reader> reader,
                            MakeReader(job.data, schema, DataSplit::kTrain, job.eval_samples));
  timed->reader_ = MakeCudaReader(std::move(reader), schema);
  timed->logits_.resize(static_cast<size_t>(options.network.batch));
  PORTOLAN_ASSIGN_OR_RETURN(timed->network_, MakeCudaNetwork(std::move(plan), options, job.seed, job.repeats));
  return timed;
}

Status TimedCudaNetwork::Round(int64_t steps) {
  double loss = 0;
  std::vector<Batch> batches(static_cast<size_t>(steps));
  for (Batch& batch : batches) {
    PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader_->Next(network_->plan().options.batch, &batch));
    if (outcome == ReadOutcome::kEnd || batch.size < network_->plan().options.batch) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("data: it ends within step {}: lower steps or rounds", step_ + 1));
    }
  }
  const double begin = Now();
  for (const Batch& batch : batches) {
    const StepResult result = network_->TrainStep(batch, SettingsAtStep(job_, ++step_), logits_.data(), {});
    if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("the loss is not finite at step {}: lower learning_rate", step_));
    }
    loss += result.loss;
  }
  rounds_.push_back((Now() - begin) / static_cast<double>(steps));
  loss_ = loss / static_cast<double>(steps);
  return {};
}

Result<StepProfile> TimedCudaNetwork::Profile(int steps) {
  return ProfileCudaStep(network_.get(), reader_.get(), SettingsAtStep(job_, step_ + 1), steps);
}

double TimedCudaNetwork::StepSeconds() const {
  if (rounds_.size() < 2) return rounds_.empty() ? 0 : rounds_.front();
  return MedianOf(std::vector<double>(rounds_.begin() + 1, rounds_.end()));
}
double TimedCudaNetwork::Spread() const {
  if (rounds_.size() < 3) return 0;
  const auto [least, most] = std::minmax_element(rounds_.begin() + 1, rounds_.end());
  return (*most - *least) / StepSeconds();
}

Recipe PortedCudaRecipe(const Recipe& recipe) {
  Recipe ported = recipe;
  ported.id = recipe.id + "_ported";
  ported.gemm = DType::kTf32;
  ported.activation = ported.normalization = DType::kFp32;
  ported.embedding_row = ported.embedding_output = DType::kFp32;
  ported.recompute = Recompute::kNone;
  return ported;
}

std::vector<CpuChange> ProposeCudaChanges(const Model& model, const Recipe& recipe,
                                          const std::set<std::string>& allow) {
  std::vector<CpuChange> changes;
  const auto propose = [&](const char* rule, const char* option, const char* what, auto set) {
    if (allow.count(rule) == 0) return;
    CpuChange change{rule, option, what, MathsClass::kChangesMaths, recipe};
    set(change.recipe);
    changes.push_back(std::move(change));
  };
  if (recipe.gemm != DType::kBf16) {
    propose("gemm_dtype", "bf16",
            "matrix products, activations and their gradients in bf16, sums and parameters in fp32", [](Recipe& r) {
              r.gemm = DType::kBf16;
              r.activation = DType::kBf16;
            });
  }
  if (recipe.embedding_row == DType::kFp32 && !model.tables.empty()) {
    propose("row_dtype", "bf16", "embedding rows in bf16, rounded stochastically",
            [](Recipe& r) { r.embedding_row = DType::kBf16; });
  }
  const EmbeddingOptimizer optimizer = recipe.embedding_optimizer.value_or(model.embedding_optimizer);
  if (optimizer == EmbeddingOptimizer::kAdagrad && !model.tables.empty()) {
    propose("embedding_optimizer", "rowwise_adagrad", "one sum of squares a row in place of one an element",
            [](Recipe& r) { r.embedding_optimizer = EmbeddingOptimizer::kRowwiseAdagrad; });
  }
  return changes;
}

Result<std::vector<Batch>> ReadSomeBatches(const Job& job, int64_t count) {
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const CudaOptions options, CudaOptionsFromRecipe(job.model, job.recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job.model, options.network));
  PORTOLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> reader,
                            MakeReader(job.data, plan.Schema(job.model), DataSplit::kTrain, job.eval_samples));
  std::vector<Batch> batches;
  while (static_cast<int64_t>(batches.size()) < count) {
    Batch batch;
    PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader->Next(options.network.batch, &batch));
    if (outcome == ReadOutcome::kEnd || batch.size < options.network.batch) break;
    batches.push_back(std::move(batch));
  }
  if (batches.empty()) return MakeError(ErrorCode::kInvalidValue, "data: no whole batch can be read from it");
  return batches;
}

Result<CudaStepPrice> PriceCudaRecipe(const Job& job, const Recipe& recipe, const std::vector<Batch>& batches,
                                      const CudaCalibration& calibration) {
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const CudaOptions options, CudaOptionsFromRecipe(job.model, recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job.model, options.network));
  return PriceCudaStep(plan, options.math, CountCudaLookups(plan, batches, calibration.l2_bytes), calibration);
}

Result<CudaOptimizeResult> OptimizeCuda(const Job& job, const CudaCalibration& calibration, int64_t rounds,
                                        const std::function<void(const std::string&, double)>& progress) {
  CudaOptimizeResult result;
  progress("planning", 0.02);
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<Batch> batches, ReadSomeBatches(job, 1));
  result.baseline.recipe = PortedCudaRecipe(job.recipe);
  PORTOLAN_ASSIGN_OR_RETURN(result.baseline.predicted,
                            PriceCudaRecipe(job, result.baseline.recipe, batches, calibration));
  Recipe recipe = result.baseline.recipe;
  CudaStepPrice now = result.baseline.predicted;
  result.priced = 1;
  for (bool better = true; better;) {
    better = false;
    double best = now.step_s * (1 - kLeastGain);
    CudaStepPrice after;
    const std::vector<CpuChange> changes = ProposeCudaChanges(job.model, recipe, job.allow);
    const CpuChange* taken = nullptr;
    for (const CpuChange& change : changes) {
      PORTOLAN_ASSIGN_OR_RETURN(const CudaStepPrice price, PriceCudaRecipe(job, change.recipe, batches, calibration));
      ++result.priced;
      if (price.step_s >= best) continue;
      best = price.step_s;
      taken = &change;
      after = price;
    }
    if (taken == nullptr) break;
    result.changes.push_back({*taken, now.step_s, after.step_s});
    recipe = taken->recipe;
    now = after;
    better = true;
  }
  recipe.id = job.recipe.id + "_codesigned";
  result.codesigned.recipe = recipe;
  result.codesigned.predicted = now;

  Job both = job;
  double needed = 0, available = 0;
  for (const MeasuredCudaRecipe* measured : {&result.baseline, &result.codesigned}) {
    both.recipe = measured->recipe;
    PORTOLAN_ASSIGN_OR_RETURN(const MemoryForecast forecast, ForecastMemory(both));
    needed += forecast.needed;
    available = forecast.available;
  }
  if (needed > available) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("both recipes side by side need {:.1f} GB of the GPU's memory, {:.1f} are available; "
                                 "use fewer rows or a smaller batch",
                                 needed * 1e-9, available * 1e-9));
  }
  PORTOLAN_ASSIGN_OR_RETURN(const auto ported, TimedCudaNetwork::Make(job, result.baseline.recipe));
  PORTOLAN_ASSIGN_OR_RETURN(const auto codesigned, TimedCudaNetwork::Make(job, result.codesigned.recipe));
  const int64_t all = std::max<int64_t>(rounds, 3) + 1, steps = std::max<int64_t>(job.steps / all, 1);
  for (int64_t round = 0; round < all; ++round) {
    progress("training both in turns", 0.1 + 0.9 * static_cast<double>(round) / static_cast<double>(all));
    PORTOLAN_RETURN_IF_ERROR(ported->Round(steps));
    PORTOLAN_RETURN_IF_ERROR(codesigned->Round(steps));
  }
  const auto finish = [&](const TimedCudaNetwork& timed, MeasuredCudaRecipe* measured) {
    measured->measured_s = timed.StepSeconds();
    measured->spread = timed.Spread();
    measured->samples_per_s = static_cast<double>(timed.plan().options.batch) / measured->measured_s;
    measured->loss = timed.Loss();
  };
  finish(*ported, &result.baseline);
  finish(*codesigned, &result.codesigned);
  result.samples = all * steps * ported->plan().options.batch;
  return result;
}

}  // namespace portolan
