#include "porting/port.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "porting/compat.h"
#include "porting/report.h"
#include "porting_options.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

struct Options {
  PortingOptions porting;
  std::string output;
  bool in_place = false;
};

void PrintSummary(const PortReport& report, const Options& options, const PortTarget& target) {
  fmt::print("Ported for {} ({}, ROCm {}.{}): {} files read, {} changed, {} copied as they are.\n", target.gfx,
             target.accelerator_name, target.rocm / 100, target.rocm % 100, report.files_read, report.files_changed,
             report.files_copied);
  if (!report.compat.empty()) {
    std::string parts;
    for (const std::string& part : report.compat) parts += (parts.empty() ? "" : ", ") + part;
    fmt::print("{}", WrapText(fmt::format("{} brings what HIP lacks: {}.", kCompatHeaderName, parts), 0, kColumns));
  }
  if (!report.checked_names) {
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

Result<int> RunPort(const GlobalOptions& global, const Options& options) {
  if (options.in_place != options.output.empty()) {
    return MakeError(ErrorCode::kUsage, "give an output with -o, or --in-place, and not both");
  }
  PORTOLAN_ASSIGN_OR_RETURN(const PortTarget target, ReadTarget(global, options.porting));
  PORTOLAN_ASSIGN_OR_RETURN(const PortReport report,
                            Port({options.porting.input, options.in_place ? options.porting.input : options.output,
                                  HipIncludeDirectory(options.porting)},
                                 target));
  PORTOLAN_RETURN_IF_ERROR(WriteReports(global, options.porting, report, target));
  if (global.json_path != "-") PrintSummary(report, options, target);
  return 0;
}

}  // namespace

void AddPortCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* port = app.add_subcommand("port", "A CUDA source or project becomes a HIP one");
  AddPortingOptions(port, &options->porting);
  port->add_option("-o,--output", options->output, "Where the HIP sources go")->type_name("PATH");
  port->add_flag("--in-place", options->in_place, "Rewrite the sources where they are");
  port->callback([&global, exit_code, options] {
    const auto result = RunPort(global, *options);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
