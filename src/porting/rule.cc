#include "porting/rule.h"

#include <algorithm>

namespace portolan {

bool RuleInput::IsFreeName(size_t i, std::string_view text) const {
  return source.IsIdentifier(i) && source.Is(i, text) && !IsDead(i) && !(i > 0 && source.Is(i - 1, ".")) &&
         !(i > 0 && source.Is(i - 1, "->"));
}

void RuleOutput::LeaveToCuda(const SourceFile& source, size_t name, size_t last) {
  const std::string_view text = source.text();
  const size_t newline = text.find('\n');
  const bool crlf = newline != std::string_view::npos && newline > 0 && text[newline - 1] == '\r';
  const std::string line_end = crlf ? "\r\n" : "\n";
  size_t first = name;
  while (first > 0 && !source.Is(first - 1, ";") && !source.Is(first - 1, "}") && !source.Is(first - 1, "{") &&
         source.tokens()[first - 1].kind != TokenKind::kDirectiveEnd) {
    --first;
  }
  const uint32_t begin = source.tokens()[first].begin;
  const bool at_line_start = begin == 0 || text[begin - 1] == '\n';
  Insert(begin, (at_line_start ? "" : line_end) + "#ifndef __HIPCC__" + line_end);
  // Behind a comment that follows on the same line, unless that comment goes on.
  const uint32_t end = source.tokens()[last].end;
  size_t line = std::min(text.find('\n', end), text.size());
  const bool alone = last + 1 == source.size() || source.tokens()[last + 1].begin >= line;
  if (alone && text.substr(end, line - end).find("/*") == std::string_view::npos) {
    if (line > end && text[line - 1] == '\r') --line;
    Insert(static_cast<uint32_t>(line), line_end + "#endif");
  } else {
    Insert(end, line_end + "#endif" + line_end);
  }
}

void RuleOutput::Find(const SourceFile& source, size_t token, FindingLevel level, std::string_view kind,
                      std::string message, std::string action) {
  findings.push_back({source.path(), source.PositionOf(source.tokens()[token].begin), level, std::string(kind),
                      std::move(message), std::move(action)});
}

}  // namespace portolan
