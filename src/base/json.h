#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace portolan {

// Writes `document` as indented UTF-8 JSON with a final newline; "-" is standard output. A file appears whole or not at
// all (it is written beside `path` and renamed). Refuses NaN and infinities, which JSON cannot express, naming the
// place of the first one; invalid UTF-8 in texts becomes U+FFFD. Blocks until written.
Status WriteJsonFile(const std::string& path, const nlohmann::ordered_json& document);

// The dotted path of the first number that is not finite, for example breakdown.compute_s or steps[3]; "" when all are
// finite.
std::string FirstNonFinite(const nlohmann::ordered_json& document);

}  // namespace portolan
