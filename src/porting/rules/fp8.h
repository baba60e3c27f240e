#pragma once

#include <string>
#include <string_view>

#include "porting/target.h"

namespace portolan {

// HIP's name, on the target, of one of CUDA's types or enumerators of 8-bit floats; "" for any other name.
std::string HipFp8Name(std::string_view cuda, const PortTarget& target);

}  // namespace portolan
