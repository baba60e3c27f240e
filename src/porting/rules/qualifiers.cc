// Qualifiers that only CUDA's compiler knows and whose absence changes nothing, and register, which clang refuses in
// C++17 and CUDA's compiler takes.

#include "porting/rules/rules.h"

namespace portolan {

void ApplyQualifiers(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  const bool c_plus_plus = source.path().size() < 2 || source.path().substr(source.path().size() - 2) != ".c";
  for (size_t i = 0; i < source.size(); ++i) {
    if (c_plus_plus && source.IsIdentifier(i) && source.Is(i, "register") && source.IsIdentifier(i + 1) &&
        !source.tokens()[i].in_directive && !input.IsDead(i)) {
      output->edits.push_back({source.tokens()[i].begin, source.tokens()[i + 1].begin, ""});
      continue;
    }
    if (!input.IsFreeName(i, "__grid_constant__") && !input.IsFreeName(i, "__nv_pure__")) continue;
    if (source.Is(i - 1, "define") || input.project.own_names.count(source.Text(i)) > 0) continue;
    uint32_t end = source.tokens()[i].end;
    if (end < source.text().size() && source.text()[end] == ' ') ++end;
    output->edits.push_back({source.tokens()[i].begin, end, ""});
    output->Find(source, i, FindingLevel::kError, "qualifier", "a qualifier that HIP's compiler does not know",
                 "port: takes it away; the parameter is in constant memory anyway");
  }
}

}  // namespace portolan
