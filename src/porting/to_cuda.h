#pragma once

#include <string>
#include <string_view>

#include "porting/port.h"
#include "porting/source.h"

namespace portolan {

// The CUDA name of a HIP name: the inverse of MapName where there is one, so that MapName(HipToCudaName(x)) is x; where
// several CUDA names become one HIP name, the runtime's and not a deprecated one. "" for what is not HIP's or has no
// counterpart.
std::string HipToCudaName(std::string_view hip);

// The CUDA header of a HIP header; "" for any other.
std::string HipToCudaHeader(std::string_view header);

// A HIP source becomes a CUDA one: names, headers, hipLaunchKernelGGL, HIP_DYNAMIC_SHARED, HIP_SYMBOL, HIP_KERNEL_NAME
// and the compiler's macros. Names that the project declares itself stay. Reported and left: shuffles and votes without
// a mask, AMD's builtins and libraries, 64-lane ballots (kind to-cuda).
PortedSource PortSourceToCuda(const SourceFile& source, const ProjectFacts& project, const PortTarget& target);

}  // namespace portolan
