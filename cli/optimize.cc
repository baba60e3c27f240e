#include "loop/optimize.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/progress.h"
#include "loop.h"
#include "loop_cuda.h"
#include "plan/validate.h"

namespace portolan {
namespace {

struct OptimizeCommand {
  std::string job, calibration;
  std::optional<int64_t> steps;
  int64_t rounds = 5;
  double max_age_days = 30;
  bool recalibrate = false;
};

std::string Time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}
std::string Share(double factor) { return fmt::format("{:+.1f} %", 100 * (factor - 1)); }
std::string Quality(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"; }

double MeasuredPhase(const MeasuredRecipe& recipe, const std::string& name) {
  for (const auto& [phase, seconds] : recipe.measured_phases) {
    if (phase == name) return seconds;
  }
  return 0;
}

void Print(const Job& job, const OptimizeResult& r, const Calibration& calibration) {
  const std::string summary = fmt::format(
      "{}: the co-designed recipe takes a step in {:.2f}x less time than the plain port, {:.2f}x predicted, at AUC {} "
      "against {} after {} samples each.",
      job.model.id, r.Speedup(), r.PredictedSpeedup(), Quality(r.codesigned.auc), Quality(r.baseline.auc), r.samples);
  fmt::print("{}\n{:<26}{:>12}{:>12}{:>9}{:>9}{:>12}\n", WrapText(summary, 0, 80), "", "predicted", "measured", "error",
             "spread", "samples/s");
  for (const auto& [name, recipe] : {std::pair{"plain port", &r.baseline}, {"co-designed", &r.codesigned}}) {
    fmt::print("{:<26}{:>12}{:>12}{:>9}{:>9}{:>10.1f} k\n", name, Time(recipe->predicted.Total()),
               Time(recipe->measured_s), fmt::format("{:+.1f} %", 100 * recipe->Error()),
               fmt::format("{:.1f} %", 100 * recipe->spread), recipe->samples_per_s * 1e-3);
  }
  fmt::print("\n{:<26}{:>12}{:>12}{:>18}{:>12}\n", "by phase", "plain port", "", "co-designed", "");
  fmt::print("{:<26}{:>12}{:>12}{:>18}{:>12}\n", "", "predicted", "measured", "predicted", "measured");
  const auto ported = r.baseline.predicted.Phases(), chosen = r.codesigned.predicted.Phases();
  for (size_t p = 0; p < ported.size(); ++p) {
    if (ported[p].second <= 0 && MeasuredPhase(r.baseline, ported[p].first) <= 0) continue;
    fmt::print("{:<26}{:>12}{:>12}{:>18}{:>12}\n", ported[p].first, Time(ported[p].second),
               Time(MeasuredPhase(r.baseline, ported[p].first)), Time(chosen[p].second),
               Time(MeasuredPhase(r.codesigned, chosen[p].first)));
  }
  fmt::print("\nquality after {} samples, {}\n", r.samples,
             r.has_eval ? "on the eval split" : "on the last quarter, predicted before trained on");
  fmt::print("{:<26}  AUC {}  NE {}\n{:<26}  AUC {}  NE {}\n", "plain port", Quality(r.baseline.auc),
             Quality(r.baseline.ne), "co-designed", Quality(r.codesigned.auc), Quality(r.codesigned.ne));
  if (r.changes.empty()) {
    fmt::print("\nno change of the plain port is worth its place\n");
  } else {
    fmt::print("\n{:<38}{:>14}{:>28}\n", "changes, in the order taken", "in order", "alone, on the plain port");
    fmt::print("{:<38}{:>14}{:>14}{:>14}\n", "", "predicted", "predicted", "measured");
  }
  for (const MeasuredChange& change : r.changes) {
    fmt::print("{:<38}{:>14}{:>14}{:>14}\n", change.priced.change.rule + " = " + change.priced.change.option,
               Share(change.priced.before_s / change.priced.after_s), Share(change.alone_predicted),
               Share(change.alone_measured));
    fmt::print("{}",
               WrapText(change.priced.change.what + " (" + MathsClassName(change.priced.change.maths) + ")", 4, 80));
  }
  if (!r.not_allowed.empty()) {
    fmt::print("\n{:<38}{:>14}\n", "not allowed by the job", "more");
    for (const PricedChange& change : r.not_allowed) {
      fmt::print("{:<38}{:>14}\n", change.change.rule + " = " + change.change.option,
                 Share(change.before_s / change.after_s));
    }
  }
  constexpr double kNotable = 1.05;
  std::string slower;
  for (size_t i = 0; i < kKernelClasses; ++i) {
    if (r.slowdown[i] <= kNotable && r.slowdown[i] >= 1 / kNotable) continue;
    slower += fmt::format("{}{} {:.2f}x", slower.empty() ? "" : ", ", KernelClassName(i), r.slowdown[i]);
  }
  if (!slower.empty()) {
    fmt::print("{}", WrapText("note: against their calibration this machine's kernels took, while the recipes were "
                              "measured: " +
                                  slower + " (other load, clock); predictions include that",
                              0, 80));
  }
  fmt::print("{} recipes priced, from the calibration of {}\n", r.priced, calibration.date);
}

nlohmann::ordered_json Document(const Job& job, const OptimizeResult& r, const Calibration& calibration) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  const auto recipe = [&](const MeasuredRecipe& m) {
    nlohmann::ordered_json phases = nlohmann::ordered_json::object();
    for (const auto& [name, seconds] : m.predicted.Phases()) {
      phases[name] = {{"predicted_s", seconds}, {"measured_s", MeasuredPhase(m, name)}};
    }
    return nlohmann::ordered_json{{"predicted_step_time_s", m.predicted.Total()},
                                  {"measured_step_time_s", m.measured_s},
                                  {"prediction_error", m.Error()},
                                  {"spread", m.spread},
                                  {"samples_per_s", m.samples_per_s},
                                  {"auc", number(m.auc)},
                                  {"ne", number(m.ne)},
                                  {"phases", phases},
                                  {"recipe", WriteRecipe(m.recipe)}};
  };
  nlohmann::ordered_json changes = nlohmann::ordered_json::array();
  for (const MeasuredChange& change : r.changes) {
    changes.push_back({{"rule", change.priced.change.rule},
                       {"option", change.priced.change.option},
                       {"what", change.priced.change.what},
                       {"maths", MathsClassName(change.priced.change.maths)},
                       {"predicted_before_s", change.priced.before_s},
                       {"predicted_after_s", change.priced.after_s},
                       {"alone_predicted_speedup", change.alone_predicted},
                       {"alone_measured_speedup", change.alone_measured}});
  }
  nlohmann::ordered_json not_allowed = nlohmann::ordered_json::array();
  for (const PricedChange& change : r.not_allowed) {
    not_allowed.push_back({{"rule", change.change.rule},
                           {"option", change.change.option},
                           {"what", change.change.what},
                           {"predicted_before_s", change.before_s},
                           {"predicted_after_s", change.after_s}});
  }
  nlohmann::ordered_json slowdown;
  for (size_t i = 0; i < kKernelClasses; ++i) slowdown[KernelClassName(i)] = r.slowdown[i];
  return {{"model", job.model.id},
          {"machine", calibration.machine},
          {"calibrated", calibration.date},
          {"samples", r.samples},
          {"slowdown_since_calibration", slowdown},
          {"auc_of", r.has_eval ? "eval" : "train"},
          {"baseline", recipe(r.baseline)},
          {"codesigned", recipe(r.codesigned)},
          {"predicted_speedup", r.PredictedSpeedup()},
          {"measured_speedup", r.Speedup()},
          {"changes", changes},
          {"not_allowed", not_allowed}};
}

// The one of --calibration as it is, where the folder has one; otherwise this machine's own, measured where it must be.
Result<Calibration> FindCalibration(const OptimizeCommand& command, ProgressBar* bar) {
  std::error_code ignored;
  if (!command.calibration.empty() && !command.recalibrate &&
      std::filesystem::exists(command.calibration + "/calibration/cpu.yaml", ignored)) {
    PORTOLAN_ASSIGN_OR_RETURN(Calibration given, ReadCalibration(command.calibration));
    if (given.machine != MachineKey()) {
      given.warnings.push_back("it was made for '" + given.machine + "', and this is '" + MachineKey() + "'");
    }
    return given;
  }
  const std::string folder = command.calibration.empty() ? UserDataDirectory() : command.calibration;
  return CalibrationOfThisMachine(
      folder, command.recalibrate ? -1 : command.max_age_days,
      [&](const std::string& part, double done) { bar->Update(0.2 * done, "calibrating: " + part); });
}

Result<int> RunOptimize(const OptimizeCommand& command, const GlobalOptions& global) {
  const auto find = [&](const std::string& kind, const std::string& name) -> Result<std::string> {
    const std::filesystem::path beside = std::filesystem::path(command.job).parent_path() / name;
    std::error_code ignored;
    if (name.find('.') != std::string::npos && std::filesystem::exists(beside, ignored)) return beside.string();
    return FindDataFile(DataDirectories(global), kind, name);
  };
  PORTOLAN_ASSIGN_OR_RETURN(Job job, LoadJob(command.job, find));
  if (command.steps) job.steps = *command.steps;
  if (job.device == JobDevice::kCuda) {
    const std::string folder = command.calibration.empty() ? UserDataDirectory() : command.calibration;
    return RunOptimizeCuda(job, {folder, command.rounds, command.recalibrate}, global);
  }
  PORTOLAN_RETURN_IF_ERROR(CheckOptimizable(job));
  ProgressBar bar;
  PORTOLAN_ASSIGN_OR_RETURN(const Calibration calibration, FindCalibration(command, &bar));
  OptimizeOptions options;
  options.rounds = command.rounds;
  options.progress = [&](const std::string& what, double done) { bar.Update(0.2 + 0.8 * done, what); };
  PORTOLAN_ASSIGN_OR_RETURN(const OptimizeResult result, Optimize(job, calibration, options));
  bar.Finish();
  for (const std::string& warning : calibration.warnings) {
    std::fputs(WrapText("warning: calibration: " + warning, 0, 80).c_str(), stderr);
  }
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, Document(job, result, calibration)));
  }
  if (global.json_path != "-") Print(job, result, calibration);
  return 0;
}

}  // namespace

void AddOptimizeCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<OptimizeCommand>();
  CLI::App* command = app.add_subcommand("optimize", "Calibrate, plan, train both recipes here");
  command->add_option("JOB", options->job, HelpText("A job file: model, recipe, data, steps, allow (docs/train.md)"))
      ->required();
  command->add_option("--steps", options->steps, HelpText("In place of the job's steps"))->check(CLI::Range(0.0, 1e12));
  command->add_option("--rounds", options->rounds, HelpText("Rounds of both recipes in turn, at least 3"))
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  command
      ->add_option(
          "--calibration", options->calibration,
          HelpText("Folder of the calibration, in place of the user's own; used as it is, made where it is missing"))
      ->type_name("DIR");
  command->add_option("--max-age", options->max_age_days, HelpText("Days after which the calibration is made anew"))
      ->check(CLI::Range(0.0, 36500.0))
      ->capture_default_str();
  command->add_flag("--recalibrate", options->recalibrate, HelpText("Measure the machine now"));
  command->footer("Run it on an idle machine. docs/optimize.md");
  command->callback([options, &global, exit_code] {
    const Result<int> result = RunOptimize(*options, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
