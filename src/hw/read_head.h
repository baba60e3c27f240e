#pragma once

#include <string>

#include "base/yaml.h"

namespace portolan {

// The id that a hardware file states, or its name without ".yaml". Ids are lower-case letters, digits, '_', '-' and
// '.', and begin with a letter, so that "8xID" can be read only one way.
std::string ReadHardwareId(YamlMap* map);

}  // namespace portolan
