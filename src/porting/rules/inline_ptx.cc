// PTX means nothing to AMD's assembler. An empty template (a compiler barrier) is no PTX.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyInlinePtx(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i) || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    if (!source.Is(i, "asm") && !source.Is(i, "__asm__") && !source.Is(i, "__asm")) continue;
    size_t open = i + 1;
    while (source.Is(open, "volatile") || source.Is(open, "__volatile__")) ++open;
    if (!source.Is(open, "(")) continue;
    std::string text;
    for (size_t t = open + 1; t < source.size() && source.tokens()[t].kind == TokenKind::kString; ++t) {
      text += source.Text(t).substr(1, source.Text(t).size() - 2);
    }
    if (text.find_first_not_of(" \t;\\n") == std::string::npos) continue;
    if (source.EnclosingDeviceFunction(i) == nullptr && !source.tokens()[i].in_directive) continue;  // host assembly
    const size_t begin = std::min(text.find_first_not_of(" \t{\\n"), text.size());
    const std::string instruction = text.substr(begin, std::min(text.find_first_of(" ;\\", begin) - begin, size_t{40}));
    output->Find(source, i, FindingLevel::kError, "inline-ptx",
                 fmt::format("PTX '{}' in asm()", instruction),
                 "replace it by a builtin or by C++");
  }
}

}  // namespace portolan
