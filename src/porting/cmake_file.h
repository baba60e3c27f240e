#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "porting/finding.h"
#include "porting/target.h"

namespace portolan {

struct PortedBuildFile {
  std::string text;
  std::vector<Finding> findings;  // what was not understood and is left, in the order of places
};

// A CMakeLists.txt or *.cmake for CMake's HIP language (3.21): the project's language, packages, imported targets,
// architectures, standards, flags and the legacy cuda_add_* commands. Sources keep their names, so that .cu files named
// in a command are given LANGUAGE HIP after it. Comments, formatting and everything else stay byte for byte; a second
// run changes nothing. A file that builds HIP already is left as it is.
PortedBuildFile PortCMakeFile(const std::string& path, std::string_view text, const PortTarget& target);

}  // namespace portolan
