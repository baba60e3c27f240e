#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "porting/report.h"

namespace portolan {

// What `port` and `audit` have in common.
struct PortingOptions {
  std::string input;
  std::string target;
  std::string rocm = "6.3";
  std::string hip_include;
  std::string sarif_path;
};

void AddPortingOptions(CLI::App* command, PortingOptions* options);

Result<PortTarget> ReadTarget(const GlobalOptions& global, const PortingOptions& options);

// --hip-include, else the include folder of an installed ROCm ($ROCM_PATH, /opt/rocm); "" without one.
std::string HipIncludeDirectory(const PortingOptions& options);

// Writes --json and --sarif.
Status WriteReports(const GlobalOptions& global, const PortingOptions& options, const PortReport& report,
                    const PortTarget& target);

// One finding: "file:line:column: level: message [kind]" and what to do.
void PrintFindings(const std::vector<Finding>& findings);

}  // namespace portolan
