#include "porting/rule.h"

namespace portolan {

bool RuleInput::IsFreeName(size_t i, std::string_view text) const {
  return source.IsIdentifier(i) && source.Is(i, text) && !IsDead(i) && !(i > 0 && source.Is(i - 1, ".")) &&
         !(i > 0 && source.Is(i - 1, "->"));
}

void RuleOutput::Find(const SourceFile& source, size_t token, FindingLevel level, std::string_view kind,
                      std::string message, std::string action) {
  findings.push_back({source.path(), source.PositionOf(source.tokens()[token].begin), level, std::string(kind),
                      std::move(message), std::move(action)});
}

}  // namespace portolan
