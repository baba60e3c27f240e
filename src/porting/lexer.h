#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace portolan {

enum class TokenKind : uint8_t {
  kIdentifier,    // names and keywords
  kNumber,        // a preprocessing number
  kString,        // any prefix, raw strings too, quotes included
  kCharacter,     // 'x' with any prefix
  kPunctuator,    // one byte, or one of :: << <<< -> ## && ||
  kHeaderName,    // <...> of an #include, brackets included
  kHash,          // the # that begins a directive
  kDirectiveEnd,  // empty; stands where a directive's last line ends
};

// A stretch of the source. White space, comments, line continuations and the byte order mark are not tokens: they are
// what lies between them, which is why text that no edit names stays as it is, byte for byte.
struct Token {
  uint32_t begin = 0;
  uint32_t end = 0;
  TokenKind kind = TokenKind::kPunctuator;
  bool in_directive = false;  // between kHash and kDirectiveEnd, both included
};

// Splits C, C++, CUDA or HIP source, whatever its encoding and line ends; never fails. What cannot be understood (a
// stray byte, a string without end) is one token up to the next line end or one byte long. `text` is at most 4 GiB - 1.
// Linear in the text's length.
std::vector<Token> Lex(std::string_view text);

}  // namespace portolan
