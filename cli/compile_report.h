#pragma once

#include "porting/compile_check.h"

namespace portolan {

// What compiling found: one line a kernel with its registers, spills, LDS and waves, then the sources that failed.
void PrintCompileReport(const CompileReport& report, const PortTarget& target);

}  // namespace portolan
