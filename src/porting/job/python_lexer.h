#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portolan {

enum class PythonTokenKind : uint8_t { kName, kNumber, kString, kPunctuator, kNewline };

struct PythonToken {
  uint32_t begin = 0;
  uint32_t end = 0;
  PythonTokenKind kind = PythonTokenKind::kPunctuator;
};

// Splits Python source. Comments and blanks are no tokens; a line end inside brackets is none either. Strings of any
// prefix, triple ones too, are one token; what cannot be understood is one byte long. Never fails; linear.
std::vector<PythonToken> LexPython(std::string_view text);

// What a string token holds between its quotes, escapes as they are spelt.
std::string_view PythonStringContent(std::string_view token);

}  // namespace portolan
