#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/progress.h"
#include "loop.h"
#include "loop/calibration.h"
#include "loop_cuda.h"

namespace portolan {
namespace {

std::string Microseconds(double seconds) { return fmt::format("{:.2f} us", seconds * 1e6); }

void Print(const Calibration& c, const std::string& folder) {
  const auto line = [](const std::string& what, const std::string& value) {
    fmt::print("{:<46}{:>16}\n", what, value);
  };
  const auto rate = [](double value, const char* unit) { return fmt::format("{:.1f} {}", value * 1e-9, unit); };
  fmt::print("{}, measured {}\n", c.machine, c.date);
  line("copy in memory, read and written", rate(c.copy_bytes_per_s, "GB/s"));
  line("  by one thread", rate(c.copy_one_thread_bytes_per_s, "GB/s"));
  line("copy in the last-level cache", rate(c.cache_bytes_per_s, "GB/s"));
  line("  of its " + fmt::format("{:.0f} MB, kept for this machine", c.last_level_bytes * 1e-6),
       fmt::format("{:.1f} MB", c.kept_bytes * 1e-6));
  double half = 1e3;
  for (double age = 1e-4; age < 1; age *= 1.2) {
    if (c.Lost(age) < 0.5) continue;
    half = age;
    break;
  }
  line("  half of it lost to others", half < 1 ? fmt::format("after {:.1f} ms", half * 1e3) : "never");
  line("products in fp32, best shape", rate(c.gemm_flops_per_s, "GFLOP/s"));
  line("  by one thread, 512 x 512 x 512", rate(c.gemm_one_thread_flops_per_s, "GFLOP/s"));
  line("products in bf16, conversions included", rate(c.gemm_bf16_flops_per_s, "GFLOP/s"));
  line("an empty parallel loop", Microseconds(c.fork_s));
  line("sort, a lookup and pass", fmt::format("{:.2f} ns", c.sort_pass_s * 1e9));
  fmt::print("\nembedding rows in fp32, from memory     forward     update with row-wise Adagrad\n");
  fmt::print("{:>8}{:>26}{:>17}{:>16}\n", "row", "a lookup", "fused, a row", "separate");
  for (const double dim : {16.0, 32.0, 64.0, 128.0, 256.0}) {
    const auto nanoseconds = [&](const char* grid) {
      return fmt::format("{:.1f} ns", 1e9 * c.Grid(grid).At({dim, 1}));
    };
    fmt::print("{:>6} B{:>26}{:>17}{:>16}\n", 4 * dim, nanoseconds("embedding_forward.fp32.cold"),
               nanoseconds("embedding_fused.rowwise_adagrad.cold"),
               nanoseconds("embedding_separate.rowwise_adagrad.cold"));
  }
  fmt::print("\nspread of repeated measurements, median        {:>10.1f} %\n", 100 * c.spread);
  for (const std::string& warning : c.warnings) fmt::print("{}", WrapText("warning: " + warning, 0, 80));
  fmt::print("{}", WrapText("written to " + folder + ": `--on cpu` and `optimize` use it from now on", 0, 80));
}

nlohmann::ordered_json Document(const Calibration& c) {
  nlohmann::ordered_json document = {{"machine", c.machine},
                                     {"date", c.date},
                                     {"threads", c.threads},
                                     {"copy_bytes_per_s", c.copy_bytes_per_s},
                                     {"copy_one_thread_bytes_per_s", c.copy_one_thread_bytes_per_s},
                                     {"cache_bytes_per_s", c.cache_bytes_per_s},
                                     {"last_level_bytes", c.last_level_bytes},
                                     {"kept_bytes", c.kept_bytes},
                                     {"aged_bytes", c.aged_bytes},
                                     {"far_table_bytes", c.far_table_bytes},
                                     {"far_lookup_s", c.far_lookup_s},
                                     {"far_update_s", c.far_update_s},
                                     {"probe_s", c.probe_s},
                                     {"gemm_flops_per_s", c.gemm_flops_per_s},
                                     {"gemm_bf16_flops_per_s", c.gemm_bf16_flops_per_s},
                                     {"fork_s", c.fork_s},
                                     {"lookup_call_s", c.lookup_call_s},
                                     {"sort_pass_s", c.sort_pass_s},
                                     {"spread", c.spread},
                                     {"warnings", c.warnings}};
  for (const auto& [name, grid] : c.grids) document["grids"][name] = {{"axes", grid.axes}, {"seconds", grid.seconds}};
  return document;
}

Result<int> RunCalibrate(const std::string& out, const std::string& device, const GlobalOptions& global) {
  const std::string folder = out.empty() ? UserDataDirectory() : out;
  if (folder.empty()) {
    return MakeError(ErrorCode::kUsage, "neither XDG_CONFIG_HOME nor HOME names a folder: give one with --out");
  }
  if (device == "cuda") return RunCalibrateCuda(folder, global);
  ProgressBar bar;
  const Calibration calibration =
      MeasureMachine([&](const std::string& part, double done) { bar.Update(done, "measuring " + part); });
  bar.Finish();
  PORTOLAN_RETURN_IF_ERROR(WriteCalibration(calibration, folder));
  if (!global.json_path.empty()) PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, Document(calibration)));
  if (global.json_path != "-") Print(calibration, folder);
  return 0;
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto out = std::make_shared<std::string>(), device = std::make_shared<std::string>("cpu");
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine, write its accelerator file");
  command
      ->add_option("--out", *out,
                   HelpText("Folder to write to, in place of the user's own ($XDG_CONFIG_HOME/portolan or "
                            "~/.config/portolan); usable as --data-dir"))
      ->type_name("DIR");
  command->add_option("--device", *device, HelpText("What to measure: cpu, or cuda for one NVIDIA GPU"))
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->footer("Run it on an idle machine: it takes a minute. docs/calibrate.md");
  command->callback([out, device, &global, exit_code] {
    const Result<int> result = RunCalibrate(*out, *device, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
