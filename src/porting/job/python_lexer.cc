#include "porting/job/python_lexer.h"

#include <algorithm>
#include <cctype>

namespace portolan {
namespace {

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }
bool IsNameByte(char c) { return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The end of the string whose quote is at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool triple = text.substr(at, 3) == std::string(3, quote);
  size_t i = at + (triple ? 3 : 1);
  while (i < text.size()) {
    if (text[i] == '\\') {
      i += 2;
    } else if (!triple && text[i] == '\n') {
      return i;  // a string without end
    } else if (text[i] == quote && (!triple || text.substr(i, 3) == std::string(3, quote))) {
      return i + (triple ? 3 : 1);
    } else {
      ++i;
    }
  }
  return text.size();
}

// Whether [begin, end) can be the prefix of a string: r, b, u, f and pairs of them.
bool IsPrefix(std::string_view word) {
  return word.size() <= 2 && std::all_of(word.begin(), word.end(), [](char c) {
           return std::string_view("rbufRBUF").find(c) != std::string_view::npos;
         });
}

}  // namespace

std::vector<PythonToken> LexPython(std::string_view text) {
  std::vector<PythonToken> tokens;
  int depth = 0;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    const size_t begin = at;
    PythonTokenKind kind = PythonTokenKind::kPunctuator;
    if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
      continue;
    }
    if (c == '\n') {
      ++at;
      if (depth > 0) continue;
      kind = PythonTokenKind::kNewline;
    } else if (c == '\\' && at + 1 < text.size() && (text[at + 1] == '\n' || text[at + 1] == '\r')) {
      at += text[at + 1] == '\r' && at + 2 < text.size() && text[at + 2] == '\n' ? 3 : 2;
      continue;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
      continue;
    } else if (c == '"' || c == '\'') {
      at = std::min(EndOfString(text, at), text.size());
      kind = PythonTokenKind::kString;
    } else if (IsNameStart(c)) {
      while (at < text.size() && IsNameByte(text[at])) ++at;
      kind = PythonTokenKind::kName;
      if (at < text.size() && (text[at] == '"' || text[at] == '\'') && IsPrefix(text.substr(begin, at - begin))) {
        at = std::min(EndOfString(text, at), text.size());
        kind = PythonTokenKind::kString;
      }
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      while (at < text.size() && (IsNameByte(text[at]) || text[at] == '.')) ++at;
      kind = PythonTokenKind::kNumber;
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      ++at;
    }
    tokens.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(at), kind});
  }
  return tokens;
}

std::string_view PythonStringContent(std::string_view token) {
  const size_t quote = token.find_first_of("\"'");
  if (quote == std::string_view::npos) return {};
  token.remove_prefix(quote);
  const size_t marks = token.size() >= 6 && token.substr(0, 3) == std::string(3, token[0]) ? 3 : 1;
  return token.size() >= 2 * marks ? token.substr(marks, token.size() - 2 * marks) : std::string_view();
}

}  // namespace portolan
