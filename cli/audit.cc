#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "commands.h"
#include "compile_report.h"
#include "porting/port.h"
#include "porting/process.h"
#include "porting/report.h"
#include "porting/verify/verified.h"
#include "porting_options.h"

namespace portolan {
namespace {

struct Options {
  PortingOptions porting;
  bool check = false;
  std::string verified;  // a report of verify; empty: none
};

// Adds what the report proves to the findings of `project`; returns the sentence on the run.
Result<std::string> CiteReport(const std::string& path, const std::string& project, std::vector<Finding>* findings) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return MakeError(ErrorCode::kNotFound, fmt::format("--verified: cannot read '{}'", path));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const nlohmann::json report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded()) {
    return MakeError(ErrorCode::kParse, fmt::format("--verified: '{}' is no JSON; `portolan --json FILE verify` "
                                                    "writes what is read here",
                                                    path));
  }
  Result<std::string> sentence = CiteVerified(report, findings);
  if (!sentence) {
    return MakeError(sentence.error().code, fmt::format("--verified: '{}': {}", path, sentence.error().message));
  }
  std::error_code error;
  for (const Finding& finding : *findings) {
    if (finding.kind != "verified" || std::filesystem::exists(std::filesystem::path(project) / finding.file, error)) {
      continue;
    }
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("--verified: '{}' is of another project: '{}' has no file '{}'", path, project, finding.file));
  }
  return sentence;
}

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
  std::string verified;
  if (!options.verified.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(verified, CiteReport(options.verified, options.porting.input, &report.findings));
  }
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
    if (!verified.empty()) fmt::print("{}", WrapText(verified + ".", 2, 80));
  }
  return options.check && CountFindings(report.findings, FindingLevel::kError) > 0 ? 1 : 0;
}

}  // namespace

void AddAuditCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* audit = app.add_subcommand("audit", "What of a CUDA project is wrong or slow there");
  AddPortingOptions(audit, &options->porting);
  audit->add_flag("--check", options->check, "Exit code 1 when a finding has level error");
  audit->add_option("--verified", options->verified, HelpText("Cite what a run of verify proved: its JSON report"))
      ->type_name("FILE");
  audit->callback([&global, exit_code, options] {
    const auto result = RunAudit(global, *options);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
