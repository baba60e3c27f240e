#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "porting/compile_check.h"

namespace portolan {

// A compiler and the headers it is to use.
struct Toolchain {
  std::string compiler;                   // full path; empty when there is none
  std::string absent;                     // then: why
  std::string headers;                    // in words
  std::vector<std::string> common_flags;  // for every pass of a HIP source
  std::vector<std::string> device_flags;  // besides, for the device pass
};

// Looks for a compiler for `target` and writes the headers that it lacks below `folder`. An error is only a header that
// cannot be written.
Result<Toolchain> FindToolchain(const CompileOptions& options, const PortTarget& target, const std::string& folder);

}  // namespace portolan
