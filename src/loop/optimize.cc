#include "loop/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/trainer.h"
#include "loop/turns.h"

namespace portolan {
namespace {

constexpr int64_t kMaxBatchesHeld = 64;
constexpr double kMaxBytesHeld = 512e6;

class Loop {
 public:
  Loop(const Job& job, const Calibration& calibration, const OptimizeOptions& options)
      : job_(job), calibration_(calibration), options_(options) {}

  Status Check() { return OpenData(); }

  Result<OptimizeResult> Go() {
    PORTOLAN_RETURN_IF_ERROR(OpenData());
    const Recipe ported = PortedRecipe(job_.recipe);
    Tell("planning", 0.02);
    PORTOLAN_ASSIGN_OR_RETURN(CpuPlan plan, PlanOnCpu(job_, ported, batches_, calibration_));
    plan.recipe.id = job_.recipe.id + "_codesigned";
    result_.priced = plan.priced;
    result_.not_allowed = plan.not_allowed;
    PORTOLAN_RETURN_IF_ERROR(Predict(ported, &result_.baseline));
    PORTOLAN_RETURN_IF_ERROR(Predict(plan.recipe, &result_.codesigned));
    PORTOLAN_RETURN_IF_ERROR(CheckMemory());
    for (size_t c = 0; c < plan.changes.size(); ++c) {
      Tell("measuring " + plan.changes[c].change.rule + " alone",
           0.05 + 0.25 * static_cast<double>(c) / static_cast<double>(plan.changes.size()));
      PORTOLAN_RETURN_IF_ERROR(MeasureAlone(plan.changes[c]));
    }
    PORTOLAN_RETURN_IF_ERROR(TrainBoth());
    return result_;
  }

 private:
  void Tell(const std::string& what, double done) const {
    if (options_.progress) options_.progress(what, done);
  }

  Status OpenData() {
    std::vector<std::string> notes;
    PORTOLAN_ASSIGN_OR_RETURN(const NetworkOptions options, OptionsFromRecipe(job_.model, job_.recipe, &notes));
    PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job_.model, options));
    batch_ = options.batch;
    const double bytes = static_cast<double>(batch_) * (4.0 * static_cast<double>(plan.dense_width) + 8 * plan.lookups +
                                                        8.0 * static_cast<double>(plan.features.size()));
    held_ = std::clamp<int64_t>(static_cast<int64_t>(kMaxBytesHeld / std::max(bytes, 1.0)), 2, kMaxBatchesHeld);
    // At least so many rounds as asked for.
    held_ = std::clamp<int64_t>(job_.steps / std::max<int64_t>(options_.rounds, 3), 1, held_);
    schema_ = plan.Schema(job_.model);
    PORTOLAN_ASSIGN_OR_RETURN(reader_, MakeReader(job_.data, schema_, DataSplit::kTrain, job_.eval_samples));
    PORTOLAN_RETURN_IF_ERROR(ReadBatches(held_));
    if (batches_.empty()) return MakeError(ErrorCode::kInvalidValue, "data: no whole batch can be read from it");
    return {};
  }

  // Whole batches only: a shorter one at the end of the data would be another step.
  Status ReadBatches(int64_t count) {
    batches_.clear();
    while (static_cast<int64_t>(batches_.size()) < count) {
      Batch batch;
      PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader_->Next(batch_, &batch));
      if (outcome == ReadOutcome::kEnd || batch.size < batch_) break;
      batches_.push_back(std::move(batch));
    }
    return {};
  }

  Status Predict(const Recipe& recipe, MeasuredRecipe* measured) {
    measured->recipe = recipe;
    PORTOLAN_ASSIGN_OR_RETURN(measured->predicted, PriceRecipe(job_, recipe, batches_, calibration_));
    return {};
  }

  Status CheckMemory() {
    Job one = job_;
    double needed = 0, available = 0;
    for (const Recipe* recipe : {&result_.baseline.recipe, &result_.codesigned.recipe}) {
      one.recipe = *recipe;
      PORTOLAN_ASSIGN_OR_RETURN(const MemoryForecast forecast, ForecastMemory(one));
      needed += forecast.needed;
      available = forecast.available;
    }
    if (available == 0 || needed <= available) return {};
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("both recipes side by side need {:.1f} GB of memory, {:.1f} are available; use fewer "
                                 "rows or a smaller batch",
                                 needed * 1e-9, available * 1e-9));
  }

  // The first batches, over and over: a timing, not a training.
  Status MeasureAlone(const PricedChange& priced) {
    Recipe alone = result_.baseline.recipe;
    for (const CpuChange& change : ProposeCpuChanges(job_.model, alone, job_.allow)) {
      if (change.rule == priced.change.rule && change.option == priced.change.option) alone = change.recipe;
    }
    MeasuredChange measured{priced, 0, 0};
    PORTOLAN_ASSIGN_OR_RETURN(const StepPrice price, PriceRecipe(job_, alone, batches_, calibration_));
    measured.alone_predicted = result_.baseline.predicted.Total() / price.Total();
    PORTOLAN_ASSIGN_OR_RETURN(const auto before, TimedNetwork::Make(job_, result_.baseline.recipe));
    PORTOLAN_ASSIGN_OR_RETURN(const auto after, TimedNetwork::Make(job_, alone));
    const std::vector<Batch> few(batches_.begin(),
                                 batches_.begin() + std::min<int64_t>(static_cast<int64_t>(batches_.size()), 16));
    for (int64_t round = 0; round < std::max<int64_t>(options_.rounds, 3); ++round) {
      PORTOLAN_RETURN_IF_ERROR(before->Round(few));
      PORTOLAN_RETURN_IF_ERROR(after->Round(few));
    }
    measured.alone_measured = before->StepSeconds() / after->StepSeconds();
    result_.changes.push_back(std::move(measured));
    return {};
  }

  Status TrainBoth() {
    PORTOLAN_ASSIGN_OR_RETURN(const auto baseline, TimedNetwork::Make(job_, result_.baseline.recipe));
    PORTOLAN_ASSIGN_OR_RETURN(const auto codesigned, TimedNetwork::Make(job_, result_.codesigned.recipe));
    SpeedProbe probe;
    std::vector<ClassTimes> slowdowns;
    int64_t steps = 0;
    while (steps < job_.steps && !batches_.empty()) {
      Tell("training both in turns", 0.3 + 0.65 * static_cast<double>(steps) / static_cast<double>(job_.steps));
      if (static_cast<int64_t>(batches_.size()) > job_.steps - steps) {
        batches_.resize(static_cast<size_t>(job_.steps - steps));
      }
      // The last quarter's predictions say how good it has become, where there is no eval split.
      if (4 * steps < 3 * job_.steps) {
        baseline->ForgetPredictions();
        codesigned->ForgetPredictions();
      }
      PORTOLAN_RETURN_IF_ERROR(baseline->Round(batches_));
      slowdowns.push_back(probe.Slowdown(calibration_));
      PORTOLAN_RETURN_IF_ERROR(codesigned->Round(batches_));
      steps += static_cast<int64_t>(batches_.size());
      if (steps < job_.steps) PORTOLAN_RETURN_IF_ERROR(ReadBatches(held_));
    }
    result_.samples = steps * batch_;
    result_.slowdown = MedianOf(slowdowns);
    result_.baseline.predicted.Scale(result_.slowdown);
    result_.codesigned.predicted.Scale(result_.slowdown);
    Tell("evaluating both", 0.96);
    PORTOLAN_RETURN_IF_ERROR(Finish(baseline.get(), &result_.baseline));
    return Finish(codesigned.get(), &result_.codesigned);
  }

  Status Finish(TimedNetwork* timed, MeasuredRecipe* measured) {
    measured->measured_s = timed->StepSeconds();
    measured->spread = timed->Spread();
    measured->measured_phases = timed->Phases();
    measured->samples_per_s = static_cast<double>(batch_) / measured->measured_s;
    measured->auc = timed->progressive().Auc();
    measured->ne = timed->progressive().NormalizedEntropy();
    if (job_.eval_samples == 0) return {};
    PORTOLAN_ASSIGN_OR_RETURN(const auto reader, MakeReader(job_.data, schema_, DataSplit::kEval, job_.eval_samples));
    if (reader == nullptr) return {};
    BinaryMetrics metrics;
    std::vector<float> logits(static_cast<size_t>(batch_));
    for (Batch batch; metrics.count() < job_.eval_samples;) {
      PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome,
                                reader->Next(std::min(batch_, job_.eval_samples - metrics.count()), &batch));
      if (outcome == ReadOutcome::kEnd) break;
      timed->network().Evaluate(batch, logits.data());
      metrics.Add(logits.data(), batch.labels.data(), batch.size);
    }
    if (metrics.count() == 0) return {};
    result_.has_eval = true;
    measured->auc = metrics.Auc();
    measured->ne = metrics.NormalizedEntropy();
    return {};
  }

  const Job& job_;
  const Calibration& calibration_;
  const OptimizeOptions& options_;
  OptimizeResult result_;
  BatchSchema schema_;
  std::unique_ptr<Reader> reader_;
  int64_t batch_ = 0, held_ = 1;
  std::vector<Batch> batches_;
};

}  // namespace

Status CheckOptimizable(const Job& job) {
  if (job.steps < 3) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("steps: both recipes must be trained for 3 steps at least, got {}", job.steps));
  }
  const Calibration none;
  const OptimizeOptions options;
  return Loop(job, none, options).Check();
}

Result<OptimizeResult> Optimize(const Job& job, const Calibration& calibration, const OptimizeOptions& options) {
  return Loop(job, calibration, options).Go();
}

}  // namespace portolan
