#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "porting/code_object.h"
#include "porting/finding.h"
#include "porting/occupancy.h"
#include "porting/port.h"
#include "porting/target.h"

namespace portolan {

struct CompileOptions {
  std::string root;       // the ported project
  std::string compiler;   // a path or name; empty: amdclang++ of ROCm or in $PATH, else clang++-22, else clang++-19
  std::string rocm_path;  // a ROCm installation; empty: none
  std::string hip_include_dir;  // HIP's headers when there is no installation; empty: Portolan's own
  std::vector<std::string> extra_flags;
  std::chrono::seconds limit{300};  // of one compiler call
  int jobs = 0;                     // compiler calls at a time; 0: one a processor
};

struct CompiledKernel {
  KernelResources resources;
  int launched_threads = 0;  // the largest constant block of the launches seen; 0 for none
  Occupancy occupancy;       // with `launched_threads`
  int compiler_waves = 0;    // what the compiler's own remark says for its largest block; 0: nothing, or no number
};

struct CompiledUnit {
  enum class End { kCompiled, kFailed, kTimedOut };
  std::string source;
  End end = End::kFailed;
  double seconds = 0;
  std::vector<Finding> findings;  // places are those of the port
  std::vector<CompiledKernel> kernels;
  std::vector<std::string> missing;  // functions of the device library that this check has no body for
};

struct CompileReport {
  std::string absent;    // why nothing was compiled, in one line; empty when something was
  std::string compiler;  // its path
  std::string headers;   // where HIP's headers and device library came from, in words
  std::vector<CompiledUnit> units;
  int Count(CompiledUnit::End end) const;
};

// Compiles every source of `port` that has device code (device pass to a code object, host pass through the front end)
// and every other that uses HIP (front end), each on its own. Nothing is linked and nothing runs. Adds findings:
//   compile-error    error    what the compiler says (the first three of a source)
//   compile-timeout  warning
//   shared-memory    error    more LDS in a kernel than a compute unit has
//   launch-bounds    error    a launch seen with more threads than the kernel was compiled for
//   register-spill   warning  registers that went to scratch, with what a launch bound would give
// Never fails for the sake of one source; an error is only a work folder that cannot be made.
Result<CompileReport> CompilePort(const PortReport& port, const CompileOptions& options, const PortTarget& target);

nlohmann::ordered_json CompileReportAsJson(const CompileReport& report);

// The diagnostics "file:line:column: error: text" in a compiler's output, as findings; files below `root` are named
// relative to it.
std::vector<Finding> FindDiagnostics(const std::string& output, const std::string& root);

// Waves a SIMD by kernel symbol, from -Rpass-analysis=kernel-resource-usage.
std::map<std::string, int> OccupancyRemarks(const std::string& output);

}  // namespace portolan
