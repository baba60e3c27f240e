// libcu++: ROCm has none of its own before libhipcxx.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyLibcudacxx(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.Is(i - 1, "include") || input.IsDead(i)) continue;
    const std::string_view spelled = source.Text(i);
    const bool quoted = spelled.substr(0, 10) == "\"cuda/std/";  // a project's own folder may be called cuda
    if ((spelled.substr(0, 6) != "<cuda/" && !quoted) || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    output->Find(source, i, FindingLevel::kError, "libcudacxx", fmt::format("ROCm has no {}", spelled),
                 "install libhipcxx, or replace what it is used for by hand");
  }
}

}  // namespace portolan
