// Functions that CUDA's headers declare for the host and HIP's do not: rsqrtf, and isfinite and its kin without std::.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyHostMath(const RuleInput& input, RuleOutput* output) {
  constexpr std::array<std::string_view, 5> kFunctions = {"rsqrtf", "rsqrt", "isfinite", "isnan", "isinf"};
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i + 1, "(") || source.tokens()[i].in_directive) continue;
    for (const std::string_view name : kFunctions) {
      if (!input.IsFreeName(i, name) || source.Is(i - 1, "::")) continue;
      if (source.EnclosingDeviceFunction(i) != nullptr || (source.IsIdentifier(i - 1) && !source.Is(i - 1, "return")))
        continue;
      output->compat.insert("host_math");
      return;
    }
  }
}

}  // namespace portolan
