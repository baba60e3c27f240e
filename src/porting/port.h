#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "porting/rule.h"

namespace portolan {

// One source with the rules applied.
struct PortedSource {
  std::string text;
  std::vector<Finding> findings;  // in the order of their places
  std::set<std::string> compat;   // parts of the compatibility header that the text uses
};

// Applies all rules to one source, given the facts of its project. `compat_include` is what an #include of the
// compatibility header must say from the place of this file; "" leaves the include out.
PortedSource PortSource(const SourceFile& source, const ProjectFacts& project, const PortTarget& target,
                        const HipDeclarations& declarations, const std::string& compat_include);

// Macros by which this source tells a ROCm build from a CUDA one. A port is the ROCm build, so they are defined where
// they are read, whatever the build files say.
std::set<std::string_view> AssumedBuildMacros(const SourceFile& source);

// What becomes of the sources.
enum class PortMode : uint8_t {
  kRewrite,    // they become HIP sources
  kShim,       // they stay; headers with CUDA's names are generated (shim.h)
  kCheckShim,  // they stay; what the headers that are there lack is reported
};

struct PortOptions {
  std::string input;            // a file or a folder
  std::string output;           // the same; empty: audit only, nothing is written; equal to `input`: in place
  std::string hip_include_dir;  // headers that decide which names exist; empty: names are mapped by rule
  PortMode mode = PortMode::kRewrite;
};

// A source that a compiler would be called with.
struct PortedUnit {
  std::string source;   // relative to the project
  bool device = false;  // has kernels or launches, or is a .cu file: HIP; otherwise it is a host source that uses HIP
};

struct PortReport {
  int files_read = 0;                // sources and build files looked at
  int files_changed = 0;             // of them
  int files_copied = 0;              // everything else that `output` got
  std::vector<std::string> skipped;  // "path: why", for what could not be read or written
  std::vector<Finding> findings;     // by file and place
  std::set<std::string> compat;
  bool checked_names = false;             // HIP headers were found
  std::string output_root;                // the folder that was written to; empty for an audit
  std::vector<std::string> shim_files;    // kShim: files of the shim, below its folder
  std::vector<std::string> shim_changed;  // kShim: those of them that were written or taken away
  std::vector<std::string> shim_lacks;    // kCheckShim: "file:line:column: what the shim has not"

  // For the check by compiling. A .cu file that another one includes is no unit of its own.
  std::vector<PortedUnit> units;
  std::vector<std::string> source_files;                                    // all sources and headers
  std::map<std::string, std::set<long long>, std::less<>> launched_blocks;  // as in ProjectFacts
  std::map<std::string, std::pair<std::string, Position>> kernels;          // name: file and place of its definition
};

// Ports or audits `options.input`. What cannot be read or understood is skipped and reported; an error is only an input
// that does not exist, an output that cannot be made or is inside the input, or one file onto a folder.
Result<PortReport> Port(const PortOptions& options, const PortTarget& target);

// A Makefile with the compiler, its flags and the libraries of HIP; `gfx` becomes the offload architecture.
std::string PortMakefile(std::string_view text, std::string_view gfx);

}  // namespace portolan
