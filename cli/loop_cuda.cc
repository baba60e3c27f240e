#include "loop_cuda.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/progress.h"
#include "loop/optimize_cuda.h"
#include "plan/validate.h"

namespace portolan {
namespace {

std::string Time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

void Print(const Job& job, const CudaOptimizeResult& r, const CudaCalibration& calibration) {
  const std::string summary = fmt::format(
      "{} on {}: the co-designed recipe takes a step in {:.2f}x less time than the plain port, {:.2f}x "
      "predicted, at a loss of {:.4f} against {:.4f} over the last of {} samples each.",
      job.model.id, calibration.device, r.Speedup(), r.PredictedSpeedup(), r.codesigned.loss, r.baseline.loss,
      r.samples);
  fmt::print("{}\n{:<26}{:>12}{:>12}{:>9}{:>9}{:>12}\n", WrapText(summary, 0, 80), "", "predicted", "measured", "error",
             "spread", "samples/s");
  for (const auto& [name, recipe] : {std::pair{"plain port", &r.baseline}, {"co-designed", &r.codesigned}}) {
    fmt::print("{:<26}{:>12}{:>12}{:>9}{:>9}{:>10.2f} M\n", name, Time(recipe->predicted.step_s),
               Time(recipe->measured_s), fmt::format("{:+.1f} %", 100 * recipe->Error()),
               fmt::format("{:.1f} %", 100 * recipe->spread), recipe->samples_per_s * 1e-6);
  }
  fmt::print("\n{:<28}{:>12}{:>14}\n", "predicted, by operation", "plain port", "co-designed");
  const auto of = [](const CudaStepPrice& price, const std::string& name) {
    for (const auto& [known, seconds] : price.operations) {
      if (known == name) return seconds;
    }
    return 0.0;
  };
  for (const auto& [name, seconds] : r.baseline.predicted.operations) {
    fmt::print("{:<28}{:>12}{:>14}\n", name, Time(seconds), Time(of(r.codesigned.predicted, name)));
  }
  if (r.changes.empty()) {
    fmt::print("\nno change that the job allows is worth its place ({} recipes priced)\n", r.priced);
    return;
  }
  fmt::print("\nchanges, in the order taken (predicted)\n");
  for (const PricedChange& change : r.changes) {
    fmt::print("{:<38}{:>14}\n", change.change.rule + " = " + change.change.option,
               fmt::format("{:+.1f} %", 100 * (change.before_s / change.after_s - 1)));
    fmt::print("{}", WrapText(change.change.what + " (" + MathsClassName(change.change.maths) + ")", 4, 80));
  }
  fmt::print("{} recipes priced, from the calibration of {}\n", r.priced, calibration.date);
}

nlohmann::ordered_json Document(const Job& job, const CudaOptimizeResult& r, const CudaCalibration& calibration) {
  const auto recipe = [](const MeasuredCudaRecipe& m) {
    nlohmann::ordered_json operations;
    for (const auto& [name, seconds] : m.predicted.operations) operations[name] = seconds;
    return nlohmann::ordered_json{{"predicted_step_time_s", m.predicted.step_s},
                                  {"measured_step_time_s", m.measured_s},
                                  {"prediction_error", m.Error()},
                                  {"spread", m.spread},
                                  {"samples_per_s", m.samples_per_s},
                                  {"loss", m.loss},
                                  {"predicted_operations_s", operations},
                                  {"recipe", WriteRecipe(m.recipe)}};
  };
  nlohmann::ordered_json changes = nlohmann::ordered_json::array();
  for (const PricedChange& change : r.changes) {
    changes.push_back({{"rule", change.change.rule},
                       {"option", change.change.option},
                       {"what", change.change.what},
                       {"maths", MathsClassName(change.change.maths)},
                       {"predicted_before_s", change.before_s},
                       {"predicted_after_s", change.after_s}});
  }
  return {{"model", job.model.id},
          {"device", calibration.device},
          {"calibrated", calibration.date},
          {"samples", r.samples},
          {"baseline", recipe(r.baseline)},
          {"codesigned", recipe(r.codesigned)},
          {"predicted_speedup", r.PredictedSpeedup()},
          {"measured_speedup", r.Speedup()},
          {"changes", changes}};
}

}  // namespace

Result<int> RunCalibrateCuda(const std::string& folder, const GlobalOptions& global) {
  ProgressBar bar;
  PORTOLAN_ASSIGN_OR_RETURN(const CudaCalibration c, CalibrateCuda([&](const std::string& part, double done) {
                              bar.Update(done, "measuring " + part);
                            }));
  bar.Finish();
  PORTOLAN_RETURN_IF_ERROR(WriteCudaCalibration(c, folder));
  if (!global.json_path.empty()) {
    nlohmann::ordered_json document = {{"device", c.device},
                                       {"date", c.date},
                                       {"l2_bytes", c.l2_bytes},
                                       {"copy_bytes_per_s", c.copy_bytes_per_s},
                                       {"step_s", c.step_s}};
    for (const auto& [name, grid] : c.grids) document["grids"][name] = {{"axes", grid.axes}, {"seconds", grid.seconds}};
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, document));
  }
  if (global.json_path == "-") return 0;
  const auto line = [](const std::string& what, const std::string& value) {
    fmt::print("{:<46}{:>16}\n", what, value);
  };
  fmt::print("{}, measured {}\n", c.device, c.date);
  line("copy in memory, read and written", fmt::format("{:.2f} TB/s", c.copy_bytes_per_s * 1e-12));
  for (const char* math : {"fp32", "tf32", "bf16"}) {
    const Result<double> seconds = c.Seconds(fmt::format("gemm.{}.nt", math), {65536, 2048, 2048});
    if (seconds) {
      line(fmt::format("product in {}, 65,536 x 2,048 x 2,048", math),
           fmt::format("{:.0f} TFLOP/s", 2.0 * 65536 * 2048 * 2048 / *seconds * 1e-12));
    }
  }
  line("a step beside its kernels", Time(c.step_s));
  fmt::print("{}", WrapText("written to " + folder + ": `optimize` of a job with device cuda uses it", 0, 80));
  return 0;
}

Result<int> RunOptimizeCuda(const Job& job, const OptimizeCudaOptions& options, const GlobalOptions& global) {
  if (job.steps < 4) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("steps: both recipes must be trained for 4 steps at least, got {}", job.steps));
  }
  ProgressBar bar;
  const auto measuring = [&](const std::string& part, double done) { bar.Update(0.5 * done, "calibrating: " + part); };
  CudaCalibration calibration;
  if (options.recalibrate) {
    PORTOLAN_ASSIGN_OR_RETURN(calibration, CalibrateCuda(measuring));
    if (!options.folder.empty()) PORTOLAN_RETURN_IF_ERROR(WriteCudaCalibration(calibration, options.folder));
  } else {
    PORTOLAN_ASSIGN_OR_RETURN(calibration, CudaCalibrationOfThisMachine(options.folder, measuring));
  }
  PORTOLAN_ASSIGN_OR_RETURN(const CudaOptimizeResult result,
                            OptimizeCuda(job, calibration, options.rounds, [&](const std::string& what, double done) {
                              bar.Update(0.5 + 0.5 * done, what);
                            }));
  bar.Finish();
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, Document(job, result, calibration)));
  }
  if (global.json_path != "-") Print(job, result, calibration);
  return 0;
}

}  // namespace portolan
