#include "porting_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"

namespace portolan {

void AddPortingOptions(CLI::App* command, PortingOptions* options) {
  command->add_option("source", options->input, "A source file, or a project's folder")->required()->type_name("PATH");
  command->add_option("--to", options->target, HelpText("The target: an accelerator (mi350x) or a gfx name (gfx950)"))
      ->required()
      ->type_name("TARGET");
  command->add_option("--rocm", options->rocm, "The ROCm release to write for, 5.2 to 7.9")
      ->capture_default_str()
      ->type_name("RELEASE");
  command
      ->add_option("--hip-include", options->hip_include,
                   HelpText("HIP's headers, which decide what names exist; otherwise those of an installed ROCm"))
      ->type_name("DIR");
  command->add_option("--sarif", options->sarif_path, "Also write the findings as SARIF 2.1.0")->type_name("FILE");
}

Result<PortTarget> ReadTarget(const GlobalOptions& global, const PortingOptions& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  return FindPortTarget(catalogue, options.target, options.rocm);
}

std::string HipIncludeDirectory(const PortingOptions& options) {
  if (!options.hip_include.empty()) return options.hip_include;
  const char* rocm = std::getenv("ROCM_PATH");
  for (const std::string& root : {std::string(rocm != nullptr ? rocm : ""), std::string("/opt/rocm")}) {
    std::error_code error;
    const std::filesystem::path include = std::filesystem::path(root) / "include";
    if (!root.empty() && std::filesystem::exists(include / "hip" / "hip_runtime_api.h", error)) return include.string();
  }
  return "";
}

Status WriteReports(const GlobalOptions& global, const PortingOptions& options, const PortReport& report,
                    const PortTarget& target) {
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, ReportAsJson(report, target)));
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
