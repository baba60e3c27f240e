#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "porting/finding.h"

namespace portolan {

// Joins what a run of `portolan verify` proved (its JSON) with what was found by reading. A finding at whose line, or
// at most two lines from it, the run saw a result go wrong gets the evidence in its message and level error; what the
// run saw elsewhere is added as findings of kind `verified`. Returns a sentence on the run as a whole: what was
// compared, and whether it agreed. An error names the field of `report` that is missing or of another type.
Result<std::string> CiteVerified(const nlohmann::json& report, std::vector<Finding>* findings);

}  // namespace portolan
