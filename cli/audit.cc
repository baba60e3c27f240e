#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "commands.h"
#include "compile_report.h"
#include "porting/port.h"
#include "porting/process.h"
#include "porting/report.h"
#include "porting_options.h"

namespace portolan {
namespace {

struct Options {
  PortingOptions porting;
  bool check = false;
};

void PrintCounts(const PortReport& report, const PortTarget& target) {
  std::map<std::string, std::array<int, 3>> kinds;
  for (const Finding& finding : report.findings) ++kinds[finding.kind][static_cast<size_t>(finding.level)];
  fmt::print("\n{} {} for {} ({}, ROCm {}.{}): {} errors, {} warnings, {} notes\n", report.files_read,
             report.files_read == 1 ? "file" : "files", target.gfx, target.accelerator_name, target.rocm / 100,
             target.rocm % 100, CountFindings(report.findings, FindingLevel::kError),
             CountFindings(report.findings, FindingLevel::kWarning),
             CountFindings(report.findings, FindingLevel::kNote));
  for (const auto& [kind, counts] : kinds) {
    fmt::print("  {:<20} {:>5} errors {:>5} warnings {:>5} notes\n", kind, counts[2], counts[1], counts[0]);
  }
  for (const std::string& line : report.skipped) fmt::print("  not looked at: {}\n", line);
}

Result<int> RunAudit(const GlobalOptions& global, const Options& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const PortTarget target, ReadTarget(global, options.porting));
  // To compile, a port is made in a work folder that goes afterwards.
  std::optional<TemporaryFolder> folder;
  if (options.porting.compile) {
    folder.emplace();
    if (folder->path().empty()) return MakeError(ErrorCode::kIo, "cannot make a work folder in $TMPDIR or /tmp");
  }
  PORTOLAN_ASSIGN_OR_RETURN(
      PortReport report,
      Port({options.porting.input, folder ? folder->path() : "", HipIncludeDirectory(options.porting)}, target));
  const std::vector<Finding> found = report.findings;
  std::optional<CompileReport> compiled;
  if (folder) {
    PORTOLAN_ASSIGN_OR_RETURN(compiled, CompilePorted(options.porting, report.output_root, target, &report));
  }
  PORTOLAN_RETURN_IF_ERROR(WriteReports(global, options.porting, report, target, compiled ? &*compiled : nullptr));
  if (global.json_path != "-") {
    PrintFindings(found);
    if (compiled) PrintCompileReport(*compiled, target);
    PrintCounts(report, target);
  }
  return options.check && CountFindings(report.findings, FindingLevel::kError) > 0 ? 1 : 0;
}

}  // namespace

void AddAuditCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* audit = app.add_subcommand("audit", "What of a CUDA project is wrong or slow there");
  AddPortingOptions(audit, &options->porting);
  audit->add_flag("--check", options->check, "Exit code 1 when a finding has level error");
  audit->callback([&global, exit_code, options] {
    const auto result = RunAudit(global, *options);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
