#include "porting_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/text.h"

namespace portolan {

void AddPortingOptions(CLI::App* command, PortingOptions* options) {
  command->add_option("source", options->input, "A source file, or a project's folder")->required()->type_name("PATH");
  command->add_option("--to", options->target, HelpText("The target: an accelerator (mi350x) or a gfx name (gfx950)"))
      ->required()
      ->type_name("TARGET");
  command->add_option("--rocm", options->rocm, HelpText("The ROCm release to write for, 5.2 to 7.9, or its folder"))
      ->capture_default_str()
      ->type_name("RELEASE");
  command
      ->add_option("--hip-include", options->hip_include,
                   HelpText("HIP's headers, which decide what names exist; otherwise those of an installed ROCm"))
      ->type_name("DIR");
  command->add_flag("--compile", options->compile,
                    HelpText("Compile each source for the target: registers, spills, LDS, waves"));
  command->add_option("--compiler", options->compiler, HelpText("Instead of amdclang++, clang++-22 or clang++-19"))
      ->type_name("PROGRAM");
  command->add_option("--compile-flag", options->compile_flags, HelpText("One more flag for it; may be repeated"))
      ->type_name("FLAG")
      ->allow_extra_args(false);
  command->add_option("--compile-seconds", options->compile_seconds, HelpText("Limit of one compiler call"))
      ->capture_default_str()
      ->check(CLI::Range(1, 86400))
      ->type_name("S");
  command->add_option("--compile-jobs", options->compile_jobs, HelpText("Compiler calls at a time; 0: one a processor"))
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  command->add_option("--sarif", options->sarif_path, "Also write the findings as SARIF 2.1.0")->type_name("FILE");
}

std::string RocmDirectory(const PortingOptions& options) {
  if (options.rocm.find('/') != std::string::npos) return options.rocm;
  const char* rocm = std::getenv("ROCM_PATH");
  for (const std::string& root : {std::string(rocm != nullptr ? rocm : ""), std::string("/opt/rocm")}) {
    std::error_code error;
    const std::filesystem::path include = std::filesystem::path(root) / "include";
    if (!root.empty() && std::filesystem::exists(include / "hip" / "hip_runtime_api.h", error)) return root;
  }
  return "";
}

Result<PortTarget> ReadTarget(const GlobalOptions& global, const PortingOptions& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  std::string release = options.rocm;
  if (release.find('/') != std::string::npos) {
    const std::string path = release + "/.info/version";
    std::ifstream file(path);
    std::string text;
    if (!std::getline(file, text) || Split(text, '.').size() < 2) {
      return MakeError(ErrorCode::kNotFound,
                       fmt::format("--rocm {}: no ROCm there ('{}' should hold its release)", options.rocm, path));
    }
    const std::vector<std::string> parts = Split(text, '.');
    release = parts[0] + "." + parts[1];
  }
  return FindPortTarget(catalogue, options.target, release);
}

std::string HipIncludeDirectory(const PortingOptions& options) {
  if (!options.hip_include.empty()) return options.hip_include;
  const std::string rocm = RocmDirectory(options);
  return rocm.empty() ? "" : rocm + "/include";
}

Result<CompileReport> CompilePorted(const PortingOptions& options, const std::string& root, const PortTarget& target,
                                    PortReport* report) {
  CompileOptions compile;
  compile.root = root;
  compile.compiler = options.compiler;
  compile.rocm_path = RocmDirectory(options);
  compile.hip_include_dir = options.hip_include;
  compile.extra_flags = options.compile_flags;
  compile.limit = std::chrono::seconds(options.compile_seconds);
  compile.jobs = options.compile_jobs;
  PORTOLAN_ASSIGN_OR_RETURN(CompileReport compiled, CompilePort(*report, compile, target));
  for (const CompiledUnit& unit : compiled.units) {
    report->findings.insert(report->findings.end(), unit.findings.begin(), unit.findings.end());
  }
  return compiled;
}

Status WriteReports(const GlobalOptions& global, const PortingOptions& options, const PortReport& report,
                    const PortTarget& target, const CompileReport* compiled) {
  if (!global.json_path.empty()) {
    nlohmann::ordered_json json = ReportAsJson(report, target);
    if (compiled != nullptr) json["compile"] = CompileReportAsJson(*compiled);
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, json));
  }
  if (!options.sarif_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(options.sarif_path, ReportAsSarif(report, PORTOLAN_VERSION)));
  }
  return {};
}

void PrintFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("{}:{}:{}: {}: {} [{}]\n", finding.file, finding.position.line, finding.position.column,
               FindingLevelName(finding.level), finding.message, finding.kind);
    if (!finding.action.empty()) fmt::print("    {}\n", finding.action);
  }
}

}  // namespace portolan
