#include "porting/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/json.h"
#include "commands.h"
#include "compile_report.h"
#include "porting/compat.h"
#include "porting/report.h"
#include "porting/shim.h"
#include "porting_options.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

struct Options {
  PortingOptions porting;
  std::string output;
  bool in_place = false;
  bool shim_only = false;
  bool check = false;
  bool launch_calls = false;
};

std::string Files(size_t count) { return fmt::format("{} file{}", count, count == 1 ? "" : "s"); }

// "gfx950 (MI350X, ROCm 6.3)", "sm_90 (H100, CUDA)"
std::string TargetText(const PortTarget& target) {
  const std::string platform =
      target.to_cuda ? "CUDA" : fmt::format("ROCm {}.{}", target.rocm / 100, target.rocm % 100);
  return fmt::format("{} ({}, {})", target.gfx, target.accelerator_name, platform);
}

void PrintSummary(const PortReport& report, const Options& options, const PortTarget& target) {
  fmt::print("Ported for {}: {} read, {} changed, {} copied as {}.\n", TargetText(target), Files(report.files_read),
             report.files_changed, report.files_copied, report.files_copied == 1 ? "it is" : "they are");
  if (!report.compat.empty()) {
    std::string parts;
    for (const std::string& part : report.compat) parts += (parts.empty() ? "" : ", ") + part;
    fmt::print("{}", WrapText(fmt::format("{} brings what HIP lacks: {}.", kCompatHeaderName, parts), 0, kColumns));
  }
  if (!report.checked_names && !target.to_cuda) {
    fmt::print("No HIP headers were found, so names follow HIP's naming rule unchecked\n(--hip-include DIR).\n");
  }
  std::vector<Finding> left;
  for (const Finding& finding : report.findings) {
    if (finding.level != FindingLevel::kNote && finding.action.rfind("port:", 0) != 0) left.push_back(finding);
  }
  if (left.empty()) {
    fmt::print("Nothing known is left to do by hand; `portolan audit` lists every place that changed meaning.\n");
  } else {
    fmt::print("\nLeft to do by hand ({}):\n", left.size());
    PrintFindings(left);
  }
  if (!report.skipped.empty()) {
    fmt::print("\nNot looked at:\n");
    for (const std::string& line : report.skipped) fmt::print("  {}\n", line);
  }
  if (!options.in_place) fmt::print("\nWritten to {}.\n", options.output);
}

void PrintLeft(const PortReport& report) {
  std::vector<Finding> left;
  for (const Finding& finding : report.findings) {
    if (IsLeft(finding)) left.push_back(finding);
  }
  if (!left.empty()) {
    fmt::print("\nNo header can do these; the sources have to change ({}):\n", left.size());
    PrintFindings(left);
  }
  if (!report.skipped.empty()) {
    fmt::print("\nNot looked at:\n");
    for (const std::string& line : report.skipped) fmt::print("  {}\n", line);
  }
}

void PrintShim(const PortReport& report, const std::string& folder, const PortTarget& target) {
  if (report.shim_files.empty()) {
    fmt::print("{} read: nothing of CUDA, so no shim is needed.\n", Files(report.files_read));
    PrintLeft(report);
    return;
  }
  fmt::print("A shim for {}: {} read, {} in {} ({} changed).\n", TargetText(target), Files(report.files_read),
             Files(report.shim_files.size()), folder, report.shim_changed.size());
  if (!report.compat.empty()) {
    std::string parts;
    for (const std::string& part : report.compat) parts += (parts.empty() ? "" : ", ") + part;
    fmt::print("{}", WrapText(fmt::format("It brings what HIP lacks: {}.", parts), 0, kColumns));
  }
  if (!report.checked_names) {
    fmt::print("No HIP headers were found, so names follow HIP's naming rule unchecked\n(--hip-include DIR).\n");
  }
  const bool overlay =
      std::find(report.shim_files.begin(), report.shim_files.end(), "overlay.yaml") != report.shim_files.end();
  fmt::print("Compile the sources as they are with\n  -x hip --offload-arch={} -I {} -include portolan_shim.h{}\n",
             target.gfx, folder, overlay ? fmt::format("\n  -ivfsoverlay {}/overlay.yaml", folder) : std::string());
  fmt::print("or include its portolan_shim.mk or portolan_shim.cmake.\n");
  std::set<std::string> copied;
  for (const Finding& finding : report.findings) {
    if (finding.action.find("changed copy") != std::string::npos) copied.insert(finding.file);
  }
  if (!copied.empty()) fmt::print("No header can repair these files; they are compiled from a changed copy:\n");
  for (const std::string& file : copied) fmt::print("  {}\n", file);
  PrintLeft(report);
}

Result<int> RunShim(const GlobalOptions& global, const Options& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const PortTarget target, ReadTarget(global, options.porting));
  PortOptions port;
  port.input = options.porting.input;
  port.output = options.output.empty() ? options.porting.input : options.output;
  port.hip_include_dir = HipIncludeDirectory(options.porting);
  port.mode = options.check ? PortMode::kCheckShim : PortMode::kShim;
  PORTOLAN_ASSIGN_OR_RETURN(const PortReport report, Port(port, target));
  PORTOLAN_RETURN_IF_ERROR(WriteReports(global, options.porting, report, target, nullptr));
  if (global.json_path != "-" && !options.check) {
    std::filesystem::path folder = port.output;
    std::error_code error;
    if (std::filesystem::is_regular_file(folder, error)) folder = folder.parent_path();
    PrintShim(report, (folder / kShimFolder).generic_string(), target);
  } else if (global.json_path != "-") {
    for (const std::string& line : report.shim_lacks) fmt::print("{}\n", line);
    fmt::print("{} read: {}.\n", Files(report.files_read),
               report.shim_lacks.empty() ? std::string("the shim has all that they use")
                                         : fmt::format("the shim lacks {} things", report.shim_lacks.size()));
  }
  return options.check && !report.shim_lacks.empty() ? 1 : 0;
}

Result<int> RunPort(const GlobalOptions& global, const Options& options) {
  if (options.check && !options.shim_only) {
    return MakeError(ErrorCode::kUsage, "--check looks at a shim: give --shim-only too");
  }
  if (options.porting.input.empty()) {
    return MakeError(ErrorCode::kUsage, "SOURCE is missing: a source file, or a project's folder");
  }
  if (options.in_place != options.output.empty() && !(options.check && !options.in_place)) {
    return MakeError(ErrorCode::kUsage, "give an output with -o, or --in-place, and not both");
  }
  if (options.shim_only) return RunShim(global, options);
  PORTOLAN_ASSIGN_OR_RETURN(PortTarget target, ReadTarget(global, options.porting));
  target.launch_calls = options.launch_calls;
  PORTOLAN_ASSIGN_OR_RETURN(PortReport report,
                            Port({options.porting.input, options.in_place ? options.porting.input : options.output,
                                  HipIncludeDirectory(options.porting)},
                                 target));
  if (!options.porting.compile) {
    PORTOLAN_RETURN_IF_ERROR(WriteReports(global, options.porting, report, target, nullptr));
    if (global.json_path != "-") PrintSummary(report, options, target);
    return 0;
  }
  if (global.json_path != "-") PrintSummary(report, options, target);
  PORTOLAN_ASSIGN_OR_RETURN(const CompileReport compiled,
                            CompilePorted(options.porting, report.output_root, target, &report));
  PORTOLAN_RETURN_IF_ERROR(WriteReports(global, options.porting, report, target, &compiled));
  if (global.json_path != "-") PrintCompileReport(compiled, target);
  return 0;
}

}  // namespace

void AddPortCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* port = app.add_subcommand("port", "A CUDA source or project becomes a HIP one");
  AddPortingOptions(port, &options->porting);
  port->get_option("source")->required(false);  // --check takes the current folder
  port->add_option("-o,--output", options->output, "Where the HIP sources go")->type_name("PATH");
  port->add_flag("--in-place", options->in_place, "Rewrite the sources where they are");
  port->add_flag("--shim-only", options->shim_only,
                 HelpText("Change no source: generate headers with CUDA's names, in OUT/portolan_shim"));
  port->add_flag("--check", options->check,
                 HelpText("With --shim-only: write nothing; exit code 1 when the project uses what its shim lacks"));
  port->add_flag("--launch-calls", options->launch_calls,
                 HelpText("Launches become calls of hipLaunchKernelGGL, for compilers without <<<>>>"));
  port->callback([&global, exit_code, options] {
    if (options->check && options->porting.input.empty()) options->porting.input = ".";
    const auto result = RunPort(global, *options);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
