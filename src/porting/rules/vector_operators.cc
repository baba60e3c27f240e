// Operators on float2, int4 and their kin. HIP's vector types have them; a project's own operator* or operator/ on two
// vectors, and its own op=, are then ambiguous at each use. Those that do what HIP's do (component by component) are
// left to CUDA's compiler. Own + and - win over HIP's, which are templates.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

// 2, 3 or 4 for float2 ... ulonglong4; 0 for other names.
int Components(std::string_view type) {
  if (type.size() < 4) return 0;
  const int count = type.back() - '0';
  if (count < 2 || count > 4) return 0;
  for (const std::string_view element : {"float", "double", "int", "uint", "char", "uchar", "short", "ushort", "long",
                                         "ulong", "longlong", "ulonglong"}) {
    if (type.substr(0, type.size() - 1) == element) return count;
  }
  return 0;
}

struct Parameter {
  std::string_view type;
  std::string_view name;
  bool by_reference = false;  // and not const
};

bool ReadParameter(const SourceFile& source, size_t begin, size_t end, Parameter* parameter) {
  bool constant = false;
  std::array<std::string_view, 2> words;
  size_t count = 0;
  for (size_t i = begin; i < end; ++i) {
    if (source.Is(i, "const")) {
      constant = true;
    } else if (source.Is(i, "&")) {
      parameter->by_reference = true;
    } else if (source.IsIdentifier(i) && count < 2) {
      words[count++] = source.Text(i);
    } else {
      return false;
    }
  }
  parameter->type = words[0];
  parameter->name = words[1];
  parameter->by_reference = parameter->by_reference && !constant;
  return count == 2;
}

// Whether the body's only arithmetic is a.x OP b.x, a.y OP b.y, ... for all components.
bool IsComponentwise(const SourceFile& source, size_t begin, size_t end, const Parameter& a, const Parameter& b,
                     char op, bool assigns, int components) {
  int found = 0;
  int operators = 0;
  for (size_t i = begin; i < end; ++i) {
    const std::string_view text = source.Text(i);
    if (text == "+" || text == "-" || text == "*" || text == "/") ++operators;
    const size_t right = i + 4 + (assigns ? 1 : 0);
    if (text != a.name || !source.Is(i + 1, ".") || !source.Is(i + 3, std::string_view(&op, 1))) continue;
    if (assigns && !source.Is(i + 4, "=")) continue;
    if (source.Is(right, b.name) && source.Is(right + 1, ".") && source.Text(right + 2) == source.Text(i + 2)) ++found;
  }
  return found == components && operators == components;
}

}  // namespace

void ApplyVectorOperators(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i, "operator") || input.IsDead(i)) continue;
    if (source.LivenessOf(i) == Liveness::kHipOnly || source.tokens()[i].in_directive) continue;
    const std::string_view text = source.Text(i + 1);
    if (text.size() != 1 || std::string_view("+-*/").find(text[0]) == std::string_view::npos) continue;
    const bool assigns = source.Is(i + 2, "=");
    if (!assigns && (text == "+" || text == "-")) continue;
    const size_t open = i + (assigns ? 3 : 2);
    if (!source.Is(open, "(")) continue;
    const auto arguments = source.Arguments(open);
    Parameter a;
    Parameter b;
    if (arguments.size() != 2 || !ReadParameter(source, arguments[0].first, arguments[0].second, &a) ||
        !ReadParameter(source, arguments[1].first, arguments[1].second, &b)) {
      continue;
    }
    const int components = Components(a.type);
    if (components == 0 || a.type != b.type || assigns != a.by_reference) continue;
    const size_t body = source.Closing(open) + 1;
    const size_t end = source.Closing(body);
    if (!source.Is(body, "{") || end == source.size()) continue;
    const bool same = IsComponentwise(source, body, end, a, b, text[0], assigns, components);
    output->Find(source, i, FindingLevel::kError, "vector-operator",
                 fmt::format("HIP's {} has its own operator{}{}: uses are ambiguous", a.type, text, assigns ? "=" : ""),
                 same ? "port: leaves the definition to CUDA's compiler"
                      : "give the project's operator another name: it does not do what HIP's does");
    if (!same) continue;
    output->LeaveToCuda(source, i, end);
  }
}

}  // namespace portolan
