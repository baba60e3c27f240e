#pragma once

#include <string>
#include <string_view>

#include "porting/target.h"

namespace portolan {

// What stands for a CUDA texture function on a chip without image instructions (part "texture" of the compatibility
// header); "" for other names, and for chips that have them.
std::string SoftwareTexture(std::string_view name, const PortTarget& target);

}  // namespace portolan
