#include "engine/data/shown_field.h"

#include <fmt/format.h>

namespace portolan {

std::string ShownField(std::string_view field) {
  constexpr size_t kShownBytes = 40;
  std::string shown(field.substr(0, kShownBytes));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return field.size() > kShownBytes ? shown + "..." : shown;
}

std::string ProblemText(FieldProblem problem, std::string_view field, const std::string& accepted) {
  switch (problem) {
    case FieldProblem::kMissing:
      return fmt::format("is missing; accepted: {}", accepted);
    case FieldProblem::kNegative:
      return fmt::format("'{}' is negative; accepted: {}", ShownField(field), accepted);
    case FieldProblem::kOutOfRange:
      return fmt::format("'{}' is out of range; accepted: {}", ShownField(field), accepted);
    case FieldProblem::kBadValue:
    case FieldProblem::kBadLine:
      break;
  }
  return fmt::format("'{}' cannot be read; accepted: {}", ShownField(field), accepted);
}

}  // namespace portolan
