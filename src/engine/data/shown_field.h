#pragma once

#include <string>
#include <string_view>

#include "engine/data/policy.h"

namespace portolan {

// A field as a message repeats it: at most 40 bytes, anything outside printable ASCII as '?'.
std::string ShownField(std::string_view field);

// "is missing; accepted: ..." and the like.
std::string ProblemText(FieldProblem problem, std::string_view field, const std::string& accepted);

}  // namespace portolan
