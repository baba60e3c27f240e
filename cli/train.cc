#include "train.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "commands.h"
#include "engine/network.h"
#include "engine/safetensors.h"
#include "engine/trainer.h"
#include "loop/calibration.h"
#include "loop/optimize_cuda.h"
#include "plan/validate.h"

namespace portolan {
namespace {

struct TrainOptions {
  std::string job, import_file, export_file, export_batches, trace, device, device_memory;
  std::optional<int64_t> steps, threads;
  bool deterministic = false, dry_run = false, profile = false;
};

std::string ShowRate(double per_s) {
  if (per_s >= 1e6) return fmt::format("{:.2f} M", per_s * 1e-6);
  return fmt::format("{:.1f} k", per_s * 1e-3);
}

std::string ShowOrDash(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"; }

void Print(const StepReport& report, int64_t steps) {
  if (report.kind == ReportKind::kNote) {
    fmt::print("note: {}\n", report.note);
  } else if (report.kind == ReportKind::kEval) {
    fmt::print("eval at step {}: loss {:.5f}  ne {}  auc {}\n", report.step, report.loss,
               ShowOrDash(report.normalized_entropy), ShowOrDash(report.auc));
  } else {
    fmt::print("step {:>7}/{}  loss {:.5f}  ne {}  auc {}  lr {:.3g}  {:.2f} ms  {}samples/s", report.step, steps,
               report.loss, ShowOrDash(report.normalized_entropy), ShowOrDash(report.auc), report.learning_rate,
               report.step_ms, ShowRate(report.samples_per_s));
    if (report.gradient_norm > 0) fmt::print("  norm {:.3g}", report.gradient_norm);
    if (report.wait_share > 0.05) fmt::print("  data {:.0f} %", 100 * report.wait_share);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

// Operations of one name together, in the order of their first.
// What a calibration of this GPU, where the user has one, expects of each operation; empty otherwise.
CudaStepPrice EstimateOf(const Job& job, const std::string& device) {
  const Result<CudaCalibration> calibration = ReadCudaCalibration(UserDataDirectory());
  if (!calibration || calibration->device != device) return {};
  const Result<std::vector<Batch>> batches = ReadSomeBatches(job, 1);
  if (!batches) return {};
  return PriceCudaRecipe(job, job.recipe, *batches, *calibration).value_or(CudaStepPrice());
}

// "roof": the time of what it cannot do without at the copy's and the product's rates, and its share of the time taken.
void PrintProfile(const StepProfile& profile, const CudaStepPrice& estimate) {
  const std::vector<OperationTime>& operations = profile.operations;
  std::vector<OperationTime> sums;
  std::vector<int> counts;
  double total = 0;
  for (const OperationTime& operation : operations) {
    size_t i = 0;
    while (i < sums.size() && sums[i].name != operation.name) ++i;
    if (i == sums.size()) {
      sums.push_back({operation.name, 0, 0, 0});
      counts.push_back(0);
    }
    sums[i].seconds += operation.seconds;
    sums[i].bytes += operation.bytes;
    sums[i].flops += operation.flops;
    ++counts[i];
    total += operation.seconds;
  }
  fmt::print("{:<26} {:>5} {:>8} {:>8} {:>6} {:>7} {:>8} {:>6}\n", "operation, one at a time", "calls", "ms",
             "estimate", "share", "GB/s", "TFLOP/s", "roof");
  const auto estimated = [&](const std::string& name) -> std::string {
    for (const auto& [known, seconds] : estimate.operations) {
      if (known == name) return fmt::format("{:.3f}", seconds * 1e3);
    }
    return "-";
  };
  for (size_t i = 0; i < sums.size(); ++i) {
    const OperationTime& sum = sums[i];
    double roof = 0;
    if (profile.copy_bytes_per_s > 0) roof = sum.bytes / profile.copy_bytes_per_s;
    if (profile.product_flops_per_s > 0) roof = std::max(roof, sum.flops / profile.product_flops_per_s);
    fmt::print("{:<26} {:>5} {:>8.3f} {:>8} {:>4.1f} % {:>6.0f} {:>8.1f} {:>4.0f} %\n", sum.name, counts[i],
               sum.seconds * 1e3, estimated(sum.name), 100 * sum.seconds / total, sum.bytes / sum.seconds * 1e-9,
               sum.flops / sum.seconds * 1e-12, 100 * roof / sum.seconds);
  }
  fmt::print("{:<26} {:>5} {:>8.3f}\n", "all", operations.size(), total * 1e3);
  fmt::print("{:<26} {:>5} {:>8.3f} {:>8}\n", "a step on the device", 1, profile.step_seconds * 1e3,
             estimate.step_s > 0 ? fmt::format("{:.3f}", estimate.step_s * 1e3) : "-");
  fmt::print("roof: {:.2f} TB/s of a copy, {:.0f} TFLOP/s of a product of 8,192^3\n", profile.copy_bytes_per_s * 1e-12,
             profile.product_flops_per_s * 1e-12);
  if (profile.products_best_s > 0) {
    fmt::print("kernels taken for {} products: {:.1f} % of the speed of the fastest of {} that the library lists\n",
               profile.products, 100 * profile.products_best_s / profile.products_taken_s, profile.product_kernels);
  }
}

double FoundShare(const HostCacheCounts& cache) {
  return static_cast<double>(cache.found) /
         static_cast<double>(std::max<int64_t>(1, cache.found + cache.loaded + cache.bypassed));
}
void PrintHostCache(const HostCacheCounts& cache) {
  fmt::print(
      "cache of {:.1f} % of {} rows in host memory: {:.2f} % of the rows of batches found, {} loaded, {} written back, "
      "{} used in host memory\n",
      100 * static_cast<double>(cache.slots) / static_cast<double>(cache.rows), cache.rows, 100 * FoundShare(cache),
      cache.loaded, cache.written_back, cache.bypassed);
}

// Models and recipes are known by name, by a path from here, and by a path from the job's folder.
Result<std::string> Find(const TrainOptions& options, const GlobalOptions& global, const std::string& kind,
                         const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(options.job).parent_path() / name;
  std::error_code ignored;
  if (name.find('.') != std::string::npos && std::filesystem::exists(beside, ignored)) return beside.string();
  return FindDataFile(DataDirectories(global), kind, name);
}

nlohmann::ordered_json CacheDocument(const HostCacheCounts& cache) {
  return {{"rows", cache.rows},     {"slots", cache.slots},       {"found", cache.found},
          {"loaded", cache.loaded}, {"bypassed", cache.bypassed}, {"written_back", cache.written_back}};
}

// The batches of the job's first steps, as tensors batch.I.dense [B, D], labels [B], ids, offsets [features * B + 1].
Status ExportBatches(const Job& job, const std::string& path) {
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkOptions network, OptionsFromRecipe(job.model, job.recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job.model, network));
  PORTOLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> reader,
                            MakeReader(job.data, plan.Schema(job.model), DataSplit::kTrain, 0));
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<TensorView> tensors;
  for (int64_t step = 0; step < job.steps; ++step) {
    auto batch = std::make_unique<Batch>();
    PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader->Next(network.batch, batch.get()));
    if (outcome == ReadOutcome::kEnd) break;
    const std::string name = fmt::format("batch.{}.", step);
    const auto add = [&](const char* part, const char* dtype, std::vector<int64_t> shape, void* data, size_t bytes) {
      tensors.push_back({name + part, dtype, std::move(shape), data, static_cast<int64_t>(bytes)});
    };
    add("dense", "F32", {batch->size, plan.dense_width}, batch->dense.data(), 4 * batch->dense.size());
    add("labels", "F32", {batch->size}, batch->labels.data(), 4 * batch->labels.size());
    add("ids", "I64", {static_cast<int64_t>(batch->ids.size())}, batch->ids.data(), 8 * batch->ids.size());
    add("offsets", "I64", {static_cast<int64_t>(batch->offsets.size())}, batch->offsets.data(),
        8 * batch->offsets.size());
    batches.push_back(std::move(batch));
  }
  return WriteSafetensors(path, tensors, {});
}

Result<int> RunTrain(const TrainOptions& options, const GlobalOptions& global) {
  const auto find = [&](const std::string& kind, const std::string& name) { return Find(options, global, kind, name); };
  PORTOLAN_ASSIGN_OR_RETURN(Job job, LoadJob(options.job, find));
  if (options.steps) job.steps = *options.steps;
  if (options.deterministic) job.repeats = Repeats::kBitEqual;
  if (!options.device.empty()) job.device = options.device == "cuda" ? JobDevice::kCuda : JobDevice::kCpu;
  if (!options.device_memory.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(const YamlValue size, YamlValue::Parse(options.device_memory, "--device-memory"));
    PORTOLAN_ASSIGN_OR_RETURN(job.device_memory_bytes, size.Number({1, 1e15}));
  }
  if (job.device_memory_bytes > 0 && job.device != JobDevice::kCuda) {
    return MakeError(ErrorCode::kInvalidValue,
                     "--device-memory (device_memory_bytes) is what a network may take on device cuda, got device cpu");
  }
  if (!options.import_file.empty()) job.import_file = options.import_file;
  if (!options.export_file.empty()) job.export_file = options.export_file;
  if (!options.trace.empty()) job.trace_file = options.trace;
  if (!options.export_batches.empty()) PORTOLAN_RETURN_IF_ERROR(ExportBatches(job, options.export_batches));
  constexpr int kProfiledSteps = 5;
  if (options.profile && job.device != JobDevice::kCuda) {
    return MakeError(ErrorCode::kInvalidValue, "--profile times the operations of device cuda, got device cpu");
  }
  if (options.profile) job.profile_steps = kProfiledSteps;
  if (options.threads) omp_set_num_threads(static_cast<int>(*options.threads));
  PORTOLAN_ASSIGN_OR_RETURN(const MemoryForecast forecast, ForecastMemory(job));
  fmt::print("{}, recipe {}, batch {}, {:.2f} GB of memory\n", job.model.id, job.recipe.id, job.recipe.GlobalBatch(1),
             forecast.needed * 1e-9);
  if (forecast.host_bytes > 0) fmt::print("{:.2f} GB of tables in host memory\n", forecast.host_bytes * 1e-9);
  if (options.dry_run) {
    for (const auto& [name, bytes] : forecast.parts) fmt::print("  {:<36} {:>10.4f} GB\n", name, bytes * 1e-9);
    fmt::print("{}\n", forecast.what_would_fit.empty() ? "fits" : "does not fit: " + forecast.what_would_fit);
    if (!global.json_path.empty()) {
      nlohmann::ordered_json parts;
      for (const auto& [name, bytes] : forecast.parts) parts[name] = bytes;
      PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, {{"needed_bytes", forecast.needed},
                                                                {"available_bytes", forecast.available},
                                                                {"host_bytes", forecast.host_bytes},
                                                                {"parts_bytes", parts},
                                                                {"fits", forecast.what_would_fit.empty()}}));
    }
    return 0;
  }
  fmt::print("{}\n",
             job.device == JobDevice::kCuda ? forecast.device : fmt::format("{} threads", omp_get_max_threads()));
  std::fflush(stdout);
  PORTOLAN_ASSIGN_OR_RETURN(const TrainSummary summary,
                            Train(job, [&](const StepReport& report) { Print(report, job.steps); }));
  const double rate = summary.seconds > 0 ? static_cast<double>(summary.samples) / summary.seconds : 0;
  fmt::print("done: {} steps, {}samples/s over {:.1f} s\n", summary.steps, ShowRate(rate), summary.seconds);
  if (summary.host_cache.rows > 0) PrintHostCache(summary.host_cache);
  if (!summary.profile.operations.empty()) PrintProfile(summary.profile, EstimateOf(job, forecast.device));
  if (!global.json_path.empty()) {
    const auto number = [](double value) {
      return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
    };
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, {{"steps", summary.steps},
                                                              {"samples", summary.samples},
                                                              {"train_s", summary.seconds},
                                                              {"samples_per_s", rate},
                                                              {"eval_loss", number(summary.eval_loss)},
                                                              {"eval_auc", number(summary.eval_auc)},
                                                              {"eval_ne", number(summary.eval_normalized_entropy)},
                                                              {"host_cache", CacheDocument(summary.host_cache)},
                                                              {"losses", summary.losses}}));
  }
  return 0;
}

}  // namespace

void AddTrainCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model on this machine's CPU or GPU");
  command->add_option("JOB", options->job, HelpText("A job file: model, recipe, data, steps (docs/train.md)"))
      ->required();
  command
      ->add_option("--device", options->device,
                   HelpText("In place of the job's device: cpu, or cuda for one NVIDIA GPU"))
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      ->add_option("--device-memory", options->device_memory,
                   HelpText("What device cuda may take of its memory, as 32GiB: tables beyond it lie in host memory, "
                            "behind a cache on the device"))
      ->type_name("SIZE");
  command->add_option("--steps", options->steps, HelpText("In place of the job's steps"))->check(CLI::Range(0.0, 1e12));
  command
      ->add_option("--threads", options->threads, HelpText("OpenMP threads; OMP_NUM_THREADS or all cores without it"))
      ->check(CLI::Range(1, 1024));
  command->add_option("--import", options->import_file, HelpText("Start from the parameters of a safetensors file"));
  command->add_option("--export", options->export_file, HelpText("Write the parameters at the end, as safetensors"));
  command->add_option("--export-batches", options->export_batches,
                      HelpText("Write the batches of the first --steps steps, as safetensors: for other programs"));
  command->add_option("--trace", options->trace, HelpText("Write the phases of every step as a Chrome trace"));
  command->add_flag(
      "--deterministic", options->deterministic,
      HelpText(
          "The same bits in every run. Always so on one CPU; on device cuda products take the library's first choice "
          "instead of the fastest timed"));
  command->add_flag("--profile", options->profile,
                    HelpText("At the end, time the operations of a few more steps one by one (device cuda)"));
  command->add_flag("--dry-run", options->dry_run,
                    HelpText("Read the job and say what memory it needs; train nothing"));
  command->footer("Goes on from the newest checkpoint of the job's folder. docs/train.md");
  command->callback([options, &global, exit_code] {
    const Result<int> result = RunTrain(*options, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
