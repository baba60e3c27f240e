// Qualifiers that only CUDA's compiler knows and whose absence changes nothing.

#include "porting/rules/rules.h"

namespace portolan {

void ApplyQualifiers(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
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
