#include "engine/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "engine/checkpoint.h"
#include "engine/cuda_network.h"
#include "engine/data/prefetch_reader.h"
#include "engine/metrics.h"
#include "engine/mlperf_log.h"
#include "engine/network.h"
#include "engine/run_log.h"

namespace portolan {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string Gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

// What of a job must be equal for its checkpoint to be usable.
std::string Identity(const Job& job, const NetworkOptions& options) {
  return fmt::format("model {} tables {} rows {} row optimizer {} dense optimizer {} batch {} seed {}", job.model.id,
                     job.model.tables.size(), static_cast<int>(options.row), static_cast<int>(options.row_optimizer),
                     static_cast<int>(options.dense_optimizer), options.batch, job.seed);
}

// One run of a job.
class Run {
 public:
  Run(const Job& job, const std::function<void(const StepReport&)>& report) : job_(job), report_(report) {}

  Result<TrainSummary> Go() {
    PORTOLAN_RETURN_IF_ERROR(Prepare());
    PORTOLAN_RETURN_IF_ERROR(LogStart());
    Result<TrainSummary> summary = Loop();
    ReportFaultyFields();
    const std::string status = summary ? "success" : "aborted";
    const Status logged = Log(MlperfEvent::kIntervalEnd, "run_stop", {}, {{"status", status}});
    if (summary && !logged) return tl::make_unexpected(logged.error());
    return summary;
  }

 private:
  static constexpr int64_t kBatchesAhead = 2;

  // What the reader's policies let pass: no field is changed or left out in silence.
  void ReportFaultyFields() const {
    for (const std::string& line : Split(reader_->Counts().Report(), '\n')) {
      if (!line.empty()) report_({ReportKind::kNote, line});
    }
  }

  Status Log(MlperfEvent event, const std::string& key, const MlperfValue& value = {},
             const std::vector<std::pair<std::string, MlperfValue>>& metadata = {}) {
    return mlperf_ ? mlperf_->Add(event, key, value, metadata) : Status();
  }

  // What MLPerf's recommendation benchmark logs before a run, and its start.
  Status LogStart() {
    if (job_.mlperf_log_file.empty()) return {};
    PORTOLAN_ASSIGN_OR_RETURN(MlperfLog log, MlperfLog::Open(job_.mlperf_log_file));
    mlperf_.emplace(std::move(log));
    const std::pair<const char*, MlperfValue> settings[] = {
        {"submission_benchmark", job_.model.id},
        {"seed", static_cast<int64_t>(job_.seed)},
        {"global_batch_size", network_->plan().options.batch},
        {"gradient_accumulation_steps", network_->plan().options.micro_batches},
        {"eval_samples", job_.eval_samples},
        {"opt_base_learning_rate", job_.schedule.rate},
        {"opt_learning_rate_warmup_steps", job_.schedule.warmup_steps}};
    for (const auto& [key, value] : settings) PORTOLAN_RETURN_IF_ERROR(Log(MlperfEvent::kPointInTime, key, value));
    return Log(MlperfEvent::kIntervalStart, "run_start", {}, {{"step", progress_.step}});
  }

  Result<TrainSummary> Loop() {
    Batch batch, next;
    std::string position, next_position;  // after each
    std::optional<ReadOutcome> next_read;
    std::vector<float> logits(static_cast<size_t>(network_->plan().options.batch));
    // The predictions of a step are taken into the metrics beside the next one.
    std::vector<float> done_logits(logits.size()), done_labels;
    int64_t done_size = 0;
    const auto take_done = [&] {
      window_.Add(done_logits.data(), done_labels.data(), done_size);
      done_size = 0;
    };
    double interval_begin = Now(), waited = 0;
    int64_t interval_samples = 0, interval_steps = 0;
    while (progress_.step < job_.steps) {
      const double asked = Now();
      ReadOutcome read = ReadOutcome::kEnd;
      if (next_read) {
        read = *next_read;
        std::swap(batch, next);
        position.swap(next_position);
        next_read.reset();
      } else {
        PORTOLAN_ASSIGN_OR_RETURN(read, reader_->Next(network_->plan().options.batch, &batch));
        position = reader_->Position();
      }
      if (network_->LooksAhead() && read != ReadOutcome::kEnd && progress_.step + 1 < job_.steps) {
        PORTOLAN_ASSIGN_OR_RETURN(next_read, reader_->Next(network_->plan().options.batch, &next));
        next_position = reader_->Position();
        if (*next_read != ReadOutcome::kEnd) network_->Expect(next);
      }
      waited += Now() - asked;
      if (read == ReadOutcome::kEnd) {
        report_({ReportKind::kNote,
                 fmt::format("the data ended after {} samples, at step {}", progress_.samples, progress_.step)});
        break;
      }
      const int64_t step = progress_.step + 1;
      const UpdateSettings settings = SettingsAtStep(job_, step);
      const StepResult result = network_->TrainStep(batch, settings, logits.data(), take_done);
      if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) return Diverged(step, result);
      progress_.step = step;
      progress_.samples += batch.size;
      progress_.position = position;
      summary_.losses.push_back(result.loss);
      done_logits.swap(logits);
      done_labels.swap(batch.labels);
      done_size = batch.size;
      if (trace_) trace_->Add(step, network_->phases());
      interval_samples += batch.size;
      ++interval_steps;
      const bool evaluate = job_.eval_every > 0 && step % job_.eval_every == 0;
      const bool save = job_.checkpoint_every > 0 && step % job_.checkpoint_every == 0 && step < job_.steps;
      if (step % job_.report_every != 0 && step != job_.steps && !evaluate && !save) continue;
      const double seconds = Now() - interval_begin;
      summary_.seconds += seconds;
      summary_.samples += interval_samples;
      take_done();
      StepReport report;
      report.step = step;
      report.loss = window_.MeanLoss();
      report.auc = window_.Auc();
      report.normalized_entropy = window_.NormalizedEntropy();
      report.learning_rate = settings.dense_rate;
      report.gradient_norm = result.gradient_norm;
      report.step_ms = seconds / static_cast<double>(interval_steps) * 1e3;
      report.samples_per_s = static_cast<double>(interval_samples) / seconds;
      report.wait_share = waited / seconds;
      PORTOLAN_RETURN_IF_ERROR(Publish(report));
      window_.Clear();
      if (evaluate) PORTOLAN_RETURN_IF_ERROR(Evaluate());
      if (save) PORTOLAN_RETURN_IF_ERROR(Save());
      interval_begin = Now();
      waited = 0;
      interval_samples = interval_steps = 0;
    }
    if (progress_.step > last_evaluated_) PORTOLAN_RETURN_IF_ERROR(Evaluate());
    if (progress_.step > last_saved_) PORTOLAN_RETURN_IF_ERROR(Save());
    if (!job_.export_file.empty()) PORTOLAN_RETURN_IF_ERROR(ExportParameters(network_.get(), job_.export_file));
    if (trace_) PORTOLAN_RETURN_IF_ERROR(trace_->Write(job_.trace_file));
    summary_.steps = progress_.step;
    summary_.host_cache = network_->host_cache();
    if (job_.profile_steps > 0) {
      PORTOLAN_ASSIGN_OR_RETURN(
          summary_.profile,
          ProfileCudaStep(network_.get(), reader_.get(), SettingsAtStep(job_, progress_.step + 1), job_.profile_steps));
    }
    return summary_;
  }

  Status Prepare() {
    std::vector<std::string> notes;
    PORTOLAN_ASSIGN_OR_RETURN(const MemoryForecast forecast, ForecastMemory(job_));
    if (!forecast.what_would_fit.empty()) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("needs {} of memory, {} are available; {}", Gigabytes(forecast.needed),
                                   Gigabytes(forecast.available), forecast.what_would_fit));
    }
    PORTOLAN_ASSIGN_OR_RETURN(const CudaOptions computed, ComputedAs(job_, &notes));
    const NetworkOptions& options = computed.network;
    PORTOLAN_ASSIGN_OR_RETURN(NetworkPlan plan, PlanNetwork(job_.model, options));
    const BatchSchema schema = plan.Schema(job_.model);
    const bool on_cuda = job_.device == JobDevice::kCuda;
    PORTOLAN_ASSIGN_OR_RETURN(std::unique_ptr<Reader> reader,
                              MakeReader(job_.data, schema, DataSplit::kTrain, job_.eval_samples));
    if (on_cuda) reader = MakeCudaReader(std::move(reader), schema);
    reader_ = std::make_unique<PrefetchReader>(std::move(reader), kBatchesAhead);
    PORTOLAN_ASSIGN_OR_RETURN(eval_reader_, MakeReader(job_.data, schema, DataSplit::kEval, job_.eval_samples));
    if (on_cuda && eval_reader_) eval_reader_ = MakeCudaReader(std::move(eval_reader_), schema);
    if (eval_reader_) eval_start_ = eval_reader_->Position();
    for (const std::string& note : notes) report_({ReportKind::kNote, note});
    if (on_cuda) {
      PORTOLAN_ASSIGN_OR_RETURN(network_, MakeCudaNetwork(std::move(plan), computed, job_.seed, job_.repeats));
    } else {
      network_ = std::make_unique<Network>(std::move(plan), job_.seed);
    }
    if (!job_.import_file.empty()) PORTOLAN_RETURN_IF_ERROR(ImportParameters(network_.get(), job_.import_file));
    progress_.job = Identity(job_, options);
    if (!job_.checkpoint_folder.empty()) {
      checkpoints_.emplace(job_.checkpoint_folder, job_.checkpoint_keep);
      PORTOLAN_ASSIGN_OR_RETURN(const std::optional<Progress> found,
                                checkpoints_->LoadNewest(network_.get(), progress_.job));
      if (found) {
        progress_ = *found;
        last_saved_ = progress_.step;
        PORTOLAN_RETURN_IF_ERROR(reader_->Restore(progress_.position));
        report_({ReportKind::kNote, fmt::format("goes on from the checkpoint of step {}", progress_.step)});
      }
    }
    if (!job_.event_folder.empty()) {
      PORTOLAN_ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open(job_.event_folder));
      events_.emplace(std::move(writer));
    }
    if (!job_.trace_file.empty()) trace_.emplace();
    return {};
  }

  Status Publish(const StepReport& report) {
    report_(report);
    if (report.kind == ReportKind::kStep) {
      PORTOLAN_RETURN_IF_ERROR(Log(MlperfEvent::kPointInTime, "train_loss", report.loss,
                                   {{"step", report.step}, {"samples_per_s", report.samples_per_s}}));
    }
    if (!events_) return {};
    const std::string prefix = report.kind == ReportKind::kEval ? "eval/" : "train/";
    std::vector<std::pair<std::string, double>> values = {
        {prefix + "loss", report.loss}, {prefix + "auc", report.auc}, {prefix + "ne", report.normalized_entropy}};
    if (report.kind == ReportKind::kStep) {
      values.emplace_back("train/learning_rate", report.learning_rate);
      values.emplace_back("train/samples_per_s", report.samples_per_s);
    }
    return events_->Add(report.step, values);
  }

  Status Evaluate() {
    last_evaluated_ = progress_.step;
    if (job_.eval_samples == 0 || !eval_reader_) return {};
    PORTOLAN_RETURN_IF_ERROR(Log(MlperfEvent::kIntervalStart, "eval_start", {}, {{"step", progress_.step}}));
    PORTOLAN_RETURN_IF_ERROR(eval_reader_->Restore(eval_start_));
    BinaryMetrics metrics;
    std::vector<float> logits(static_cast<size_t>(network_->plan().options.batch));
    const double begin = Now();
    for (Batch batch;;) {
      const int64_t left = std::min(network_->plan().options.batch, job_.eval_samples - metrics.count());
      if (left <= 0) break;
      PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, eval_reader_->Next(left, &batch));
      if (outcome == ReadOutcome::kEnd) break;
      network_->Evaluate(batch, logits.data());
      metrics.Add(logits.data(), batch.labels.data(), batch.size);
    }
    StepReport report;
    report.kind = ReportKind::kEval;
    report.step = progress_.step;
    report.loss = summary_.eval_loss = metrics.MeanLoss();
    report.auc = summary_.eval_auc = metrics.Auc();
    report.normalized_entropy = summary_.eval_normalized_entropy = metrics.NormalizedEntropy();
    report.samples_per_s = static_cast<double>(metrics.count()) / (Now() - begin);
    const std::vector<std::pair<std::string, MlperfValue>> where = {{"step", progress_.step},
                                                                    {"samples_count", progress_.samples}};
    PORTOLAN_RETURN_IF_ERROR(Log(MlperfEvent::kPointInTime, "eval_accuracy", report.auc, where));
    PORTOLAN_RETURN_IF_ERROR(Log(MlperfEvent::kIntervalEnd, "eval_stop", {}, where));
    return Publish(report);
  }

  Status Save() {
    if (!checkpoints_) return {};
    last_saved_ = progress_.step;
    return checkpoints_->Save(network_.get(), progress_);
  }

  tl::unexpected<Error> Diverged(int64_t step, const StepResult& result) {
    const std::string what = std::isfinite(result.loss) ? fmt::format("the gradient norm is {}", result.gradient_norm)
                                                        : fmt::format("the loss is {}", result.loss);
    std::string kept = "no checkpoint was kept";
    if (checkpoints_ && last_saved_ > 0) {
      kept = fmt::format("the checkpoint of step {} in {} is from before", last_saved_, job_.checkpoint_folder);
    }
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("{} at step {}: lower learning_rate ({} now), warm up, or set clip_norm; {}", what,
                                 step, job_.schedule.rate * job_.schedule.Factor(step), kept));
  }

  const Job& job_;
  const std::function<void(const StepReport&)>& report_;
  std::unique_ptr<Reader> reader_, eval_reader_;
  std::string eval_start_;
  std::unique_ptr<TrainableNetwork> network_;
  std::optional<CheckpointFolder> checkpoints_;
  std::optional<EventWriter> events_;
  std::optional<ChromeTrace> trace_;
  std::optional<MlperfLog> mlperf_;
  Progress progress_;
  int64_t last_saved_ = 0, last_evaluated_ = -1;
  BinaryMetrics window_;
  TrainSummary summary_;
};

}  // namespace

UpdateSettings SettingsAtStep(const Job& job, int64_t step) {
  const double factor = job.schedule.Factor(step);
  UpdateSettings settings;
  settings.dense_rate = static_cast<float>(job.schedule.rate * factor);
  settings.row_rate = static_cast<float>(job.schedule.row_rate * factor);
  settings.momentum = job.momentum;
  settings.epsilon = job.epsilon;
  settings.beta1 = job.beta1;
  settings.beta2 = job.beta2;
  settings.clip_norm = job.clip_norm;
  settings.step = step;
  settings.seed = job.seed;
  return settings;
}

Result<TrainSummary> Train(const Job& job, const std::function<void(const StepReport&)>& report) {
  try {
    return Run(job, report).Go();
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kIo, "the system gave less memory than it said to have; use a smaller batch or model");
  } catch (const std::runtime_error& error) {
    const std::string text = DeviceFailureText(error);
    if (text.empty()) throw;
    return MakeError(ErrorCode::kIo, text);
  }
}

}  // namespace portolan
