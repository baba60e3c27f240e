// PTX means nothing to AMD's assembler. One instruction that has an equivalent becomes C++ (ptx.inc); the rest is
// reported. An empty template (a compiler barrier) is no PTX.

#include <fmt/format.h>

#include "porting/ptx.h"
#include "porting/rules/rules.h"

namespace portolan {
namespace {

struct AsmStatement {
  std::string text;                   // the template, literals joined, quotes removed
  std::vector<std::string> operands;  // expressions of the outputs, then of the inputs
  size_t close = 0;                   // token index of the closing parenthesis
  bool understood = true;
};

AsmStatement Read(const SourceFile& source, size_t open) {
  AsmStatement statement;
  statement.close = source.Closing(open);
  size_t at = open + 1;
  for (; at < statement.close && source.tokens()[at].kind == TokenKind::kString; ++at) {
    const std::string_view literal = source.Text(at);
    if (literal.size() >= 2 && literal[0] == '"') statement.text += literal.substr(1, literal.size() - 2);
  }
  int section = 0;  // 1: outputs, 2: inputs, 3: clobbers
  while (at < statement.close) {
    if (source.Is(at, ":") || source.Is(at, "::")) {
      section += source.Is(at, "::") ? 2 : 1;
      ++at;
    } else if (section == 1 || section == 2) {
      if (source.Is(at, ",")) {
        ++at;
      } else if (source.tokens()[at].kind == TokenKind::kString && source.Is(at + 1, "(") &&
                 source.Closing(at + 1) < statement.close) {
        // "+r" is read and written: the C++ would need it twice.
        statement.understood = statement.understood && source.Text(at).find('+') == std::string_view::npos;
        statement.operands.emplace_back(source.Range(at + 2, source.Closing(at + 1)));
        at = source.Closing(at + 1) + 1;
      } else {
        statement.understood = false;
        return statement;
      }
    } else {
      ++at;
    }
  }
  return statement;
}

// Assembly of AMD's: v_add_f32, s_waitcnt, ds_read_b64 ...
bool IsAmdAssembly(std::string_view text) {
  for (const std::string_view prefix : {"v_", "s_", "ds_", "buffer_", "global_", "flat_", "scratch_"}) {
    if (text.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

}  // namespace

void ApplyInlinePtx(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i) || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    if (!source.Is(i, "asm") && !source.Is(i, "__asm__") && !source.Is(i, "__asm")) continue;
    size_t open = i + 1;
    while (source.Is(open, "volatile") || source.Is(open, "__volatile__")) ++open;
    if (!source.Is(open, "(") || source.Closing(open) == source.size()) continue;
    if (source.EnclosingDeviceFunction(i) == nullptr && !source.tokens()[i].in_directive) continue;  // host assembly
    const AsmStatement statement = Read(source, open);
    const size_t begin = statement.text.find_first_not_of(" \t{;\\n");
    if (begin == std::string::npos || IsAmdAssembly(std::string_view(statement.text).substr(begin))) continue;
    std::set<std::string> parts;
    const std::string translation =
        statement.understood ? TranslatePtx(statement.text, statement.operands, &parts) : std::string();
    const std::string instruction =
        statement.text.substr(begin, std::min(statement.text.find_first_of(";\\", begin) - begin, size_t{50}));
    output->Find(source, i, FindingLevel::kError, "inline-ptx", fmt::format("PTX '{}' in asm()", instruction),
                 translation.empty() ? "replace it by a builtin or by C++" : fmt::format("port: {}", translation));
    if (translation.empty()) continue;
    output->edits.push_back({source.tokens()[i].begin, source.tokens()[statement.close].end, translation});
    output->compat.insert(parts.begin(), parts.end());
  }
}

}  // namespace portolan
