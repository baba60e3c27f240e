// libcu++: ROCm has none of its own before libhipcxx.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyLibcudacxx(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (source.tokens()[i].kind != TokenKind::kHeaderName || input.IsDead(i)) continue;
    const std::string_view spelled = source.Text(i);
    if (spelled.substr(0, 6) != "<cuda/" || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    output->Find(source, i, FindingLevel::kError, "libcudacxx", fmt::format("ROCm has no {}", spelled),
                 "install libhipcxx, or replace what it is used for by hand");
  }
}

}  // namespace portolan
