#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "porting/compile_check.h"
#include "porting/report.h"

namespace portolan {

// What `port` and `audit` have in common.
struct PortingOptions {
  std::string input;
  std::string target;
  std::string rocm = "6.3";
  std::string hip_include;
  std::string sarif_path;
  bool compile = false;
  std::string compiler;
  std::vector<std::string> compile_flags;
  int compile_seconds = 300;
  int compile_jobs = 0;
};

void AddPortingOptions(CLI::App* command, PortingOptions* options);

// The folder of --rocm when it names one instead of a release, else $ROCM_PATH or /opt/rocm where they hold HIP; "".
std::string RocmDirectory(const PortingOptions& options);

// Compiles what `report` says was ported to `root` and adds what that finds to `report`.
Result<CompileReport> CompilePorted(const PortingOptions& options, const std::string& root, const PortTarget& target,
                                    PortReport* report);

// The target; --rocm DIR stands for the release that DIR/.info/version names.
Result<PortTarget> ReadTarget(const GlobalOptions& global, const PortingOptions& options);

// --hip-include, else the include folder of RocmDirectory(); "" without one.
std::string HipIncludeDirectory(const PortingOptions& options);

// Writes --json and --sarif; `compiled` is nullptr without --compile.
Status WriteReports(const GlobalOptions& global, const PortingOptions& options, const PortReport& report,
                    const PortTarget& target, const CompileReport* compiled);

// One finding: "file:line:column: level: message [kind]" and what to do.
void PrintFindings(const std::vector<Finding>& findings);

}  // namespace portolan
