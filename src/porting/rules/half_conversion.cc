// What CUDA's types of 16 bits take and HIP 6's find ambiguous: v = {} of half2, and casts in templates.
//
// static_cast<T>(x) from bfloat16 to half or back: CUDA's types convert through float, HIP 6's are ambiguous. Types
// need a compiler to be known, so where T is a template parameter and the file includes both types' headers, the cast
// becomes a function that converts those two through float and does what the cast does for all others.

#include "porting/rules/rules.h"

namespace portolan {
namespace {

bool IncludesBothTypes(const SourceFile& source) {
  bool half = false;
  bool bfloat16 = false;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.Is(i - 1, "include") || source.Text(i).size() < 3) continue;
    const std::string_view header = source.Text(i).substr(1, source.Text(i).size() - 2);
    half = half || header == "cuda_fp16.h" || header == "cuda_fp16.hpp";
    bfloat16 = bfloat16 || header == "cuda_bf16.h" || header == "cuda_bf16.hpp";
  }
  return half && bfloat16;
}

// Whether the first name of the operand [begin, end) is declared above as auto or by a template parameter (const T*),
// so that it may be half or bfloat16.
bool HasOpenType(const SourceFile& source, size_t begin, size_t end, const std::set<std::string_view>& parameters) {
  constexpr size_t kReach = 4000;  // tokens
  while (begin < end && !source.IsIdentifier(begin)) ++begin;
  const std::string_view name = source.Text(begin);
  for (size_t i = begin; i > 1 && i + kReach > begin; --i) {
    if (!source.Is(i - 1, name)) continue;
    size_t type = i - 2;
    while (type > 0 && (source.Is(type, "*") || source.Is(type, "&") || source.Is(type, "const") ||
                        source.Is(type, "__restrict__") || source.Is(type, "__restrict"))) {
      --type;
    }
    if (source.IsIdentifier(type) && !source.Is(type, "return")) {
      return parameters.count(source.Text(type)) > 0 || source.Is(type, "auto");
    }
  }
  return false;
}

bool IsHalf(std::string_view type) {
  return type == "half" || type == "__half" || type == "half2" || type == "__half2";
}

// v = {}; of a half2 becomes v = half2{};
void AssignEmptyLists(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i + 4 < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i + 1, "=") || !source.Is(i + 2, "{") || !source.Is(i + 3, "}")) continue;
    const bool statement = source.Is(i - 1, ";") || source.Is(i - 1, "{") || source.Is(i - 1, "}");
    const DeviceFunction* function = source.EnclosingDeviceFunction(i);
    if (!statement || function == nullptr || input.IsDead(i)) continue;
    std::string_view type;
    for (size_t t = function->name_token; t < i; ++t) {
      if (source.Is(t, source.Text(i)) && IsHalf(source.Text(t - 1))) type = source.Text(t - 1);
    }
    if (type.empty()) continue;
    output->Insert(source.tokens()[i + 2].begin, std::string(type));
    output->Find(source, i, FindingLevel::kError, "half-conversion",
                 "HIP's type has several assignments for an empty list", "port: writes the type before the list");
  }
}

}  // namespace

void ApplyHalfConversion(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  if (!input.target.RocmBefore(7, 0)) return;
  AssignEmptyLists(input, output);
  if (!IncludesBothTypes(source)) return;
  const std::set<std::string_view> parameters = TemplateParameters(source);
  for (size_t i = 0; i < source.size(); ++i) {
    // static_cast < T > ( expression )
    if (!source.Is(i, "static_cast") || !source.Is(i + 1, "<") || !source.Is(i + 3, ">") || !source.Is(i + 4, "("))
      continue;
    if (input.IsDead(i) || parameters.count(source.Text(i + 2)) == 0) continue;
    if (source.EnclosingDeviceFunction(i) == nullptr) continue;
    const size_t close = source.Closing(i + 4);
    // A literal may be a null pointer, which a function's argument is not.
    if (close == source.size() || close < i + 6 || (close == i + 6 && !source.IsIdentifier(i + 5))) continue;
    if (!HasOpenType(source, i + 5, close, parameters)) continue;
    output->Replace(source, i, "portolan::convert_to");
    output->compat.insert("half_conversion");
    output->Find(source, i, FindingLevel::kWarning, "half-conversion",
                 "HIP's half and bfloat16 do not convert to each other with a cast, should these be the types here",
                 "port: converts the two through float, all others by the cast");
  }
}

}  // namespace portolan
