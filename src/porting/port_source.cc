#include <algorithm>
#include <tuple>

#include "porting/compat.h"
#include "porting/port.h"
#include "porting/to_cuda.h"

namespace portolan {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Whether the file begins with #pragma once, or with the #ifndef of a guard around all of it.
bool BeginsWithGuard(const SourceFile& source) {
  if (source.size() < 4 || source.tokens()[0].kind != TokenKind::kHash) return false;
  if (source.Is(1, "pragma") && source.Is(2, "once")) return true;
  if (!source.Is(1, "ifndef") || source.conditionals().empty()) return false;
  for (const Conditional& conditional : source.conditionals()) {
    if (conditional.branches.front().hash != 0) continue;
    // What is left is #endif and its end.
    return conditional.branches.size() == 1 && conditional.branches.front().end + 3 >= source.size();
  }
  return false;
}

// Where a line of includes can go in: before the first token, or behind the line of a guard, on a line of its own.
// `before` is what must stand before it.
uint32_t FirstLine(const SourceFile& source, std::string* before) {
  if (source.size() == 0) return static_cast<uint32_t>(source.text().size());
  if (BeginsWithGuard(source)) {
    size_t end = 1;
    while (end < source.size() && source.tokens()[end].kind != TokenKind::kDirectiveEnd) ++end;
    const size_t newline =
        end < source.size() ? source.text().find('\n', source.tokens()[end].begin) : std::string::npos;
    if (newline != std::string_view::npos) return static_cast<uint32_t>(newline + 1);
  }
  const uint32_t token = source.tokens()[0].begin;
  const std::string_view text = source.text();
  uint32_t line = token;
  while (line > 0 && text[line - 1] != '\n') --line;
  if (line == 0 && text.substr(0, 3) == "\xEF\xBB\xBF") line = 3;
  const std::string_view lead = text.substr(line, token - line);
  if (lead.find_first_not_of(" \t") == std::string_view::npos) return line;
  *before = "\n";  // behind a comment on the same line
  return token;
}

bool Includes(const SourceFile& source, std::string_view file) {
  for (size_t i = 1; i < source.size(); ++i) {
    const TokenKind kind = source.tokens()[i].kind;
    if ((kind == TokenKind::kHeaderName || kind == TokenKind::kString) && source.Is(i - 1, "include") &&
        source.Text(i).find(file) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// nvcc includes the runtime header before each .cu file, so that none of them must.
bool NeedsRuntimeHeader(const SourceFile& source, const std::vector<Edit>& edits) {
  if (!EndsWith(source.path(), ".cu") || source.size() == 0) return false;
  if (Includes(source, "hip/hip_runtime.h") || Includes(source, kCompatHeaderName)) return false;
  for (const Edit& edit : edits) {
    if (edit.text == "<hip/hip_runtime.h>" || edit.text == "\"hip/hip_runtime.h\"") {
      // An include behind a condition, or one that stands after others that need it, is not enough.
      const auto first = std::find_if(source.tokens().begin(), source.tokens().end(), [](const Token& token) {
        return token.kind == TokenKind::kHeaderName || token.kind == TokenKind::kString;
      });
      return first != source.tokens().end() && first->begin < edit.begin && first->kind == TokenKind::kString;
    }
  }
  return true;
}

}  // namespace

std::set<std::string_view> AssumedBuildMacros(const SourceFile& source) {
  std::set<std::string_view> macros;
  for (const Conditional& conditional : source.conditionals()) {
    if (!conditional.names_hip) continue;
    for (const Conditional::Branch& branch : conditional.branches) {
      for (uint32_t t = branch.condition; t < branch.directive_end; ++t) {
        if (source.IsIdentifier(t) && IsBuildMacro(source.Text(t))) macros.insert(source.Text(t));
      }
    }
  }
  for (size_t i = 1; i < source.size(); ++i) {
    if (source.Is(i - 1, "define") && source.IsIdentifier(i)) macros.erase(source.Text(i));
  }
  return macros;
}

PortedSource PortSource(const SourceFile& source, const ProjectFacts& project, const PortTarget& target,
                        const HipDeclarations& declarations, const std::string& compat_include) {
  if (target.to_cuda) return PortSourceToCuda(source, project, target);
  const RuleInput input{source, project, target, declarations};
  RuleOutput output;
  for (const PortingRule& rule : AllPortingRules()) rule.apply(input, &output);

  const size_t newline = source.text().find('\n');
  const bool crlf = newline != std::string_view::npos && newline > 0 && source.text()[newline - 1] == '\r';
  const std::string line_end = crlf ? "\r\n" : "\n";
  std::string includes;
  if (NeedsRuntimeHeader(source, output.edits)) includes = "#include <hip/hip_runtime.h>" + line_end;
  if (!output.compat.empty() && !compat_include.empty() && !Includes(source, kCompatHeaderName)) {
    includes += "#include \"" + compat_include + "\"" + line_end;
  }
  for (const std::string_view macro : AssumedBuildMacros(source)) {
    const std::string name(macro);
    std::string lines = "#ifndef " + name;
    lines.append(line_end).append("#define ").append(name).append(" 1").append(line_end);
    lines.append("#endif").append(line_end);
    includes.insert(0, lines);
  }
  if (!includes.empty()) {
    std::string before;
    const uint32_t at = FirstLine(source, &before);
    output.edits.insert(output.edits.begin(), {at, at, (before.empty() ? "" : line_end) + includes});
  }

  PortedSource result;
  result.text = ApplyEdits(source.text(), std::move(output.edits));
  result.compat = std::move(output.compat);
  result.findings = std::move(output.findings);
  std::stable_sort(result.findings.begin(), result.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.position.line, a.position.column) < std::tie(b.position.line, b.position.column);
  });
  return result;
}

}  // namespace portolan
