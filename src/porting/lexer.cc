#include "porting/lexer.h"

#include <string>

namespace portolan {
namespace {

bool IsIdentifierStart(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 0x80;
}
bool IsDigit(unsigned char c) { return c >= '0' && c <= '9'; }
bool IsIdentifierPart(unsigned char c) { return IsIdentifierStart(c) || IsDigit(c); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> Run() {
    tokens_.reserve(text_.size() / 4);
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    while (true) {
      SkipBlanksAndComments();
      if (at_ >= text_.size()) break;
      if (text_[at_] == '\n') {
        EndDirective();
        line_start_ = true;
        ++at_;
        continue;
      }
      LexToken();
      line_start_ = false;
    }
    EndDirective();
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // Length of a backslash and the line end behind it at `at`; 0: none is there.
  size_t Continuation(size_t at) const {
    if (at >= text_.size() || text_[at] != '\\') return 0;
    size_t end = at + 1;
    while (end < text_.size() && IsBlank(text_[end])) ++end;
    return end < text_.size() && text_[end] == '\n' ? end + 1 - at : 0;
  }

  // Stops at a token, a line end or the end. A comment that spans lines does not end a directive, as in C.
  void SkipBlanksAndComments() {
    while (at_ < text_.size()) {
      if (IsBlank(text_[at_])) {
        ++at_;
      } else if (const size_t length = Continuation(at_); length > 0) {
        at_ += length;
      } else if (text_[at_] == '/' && Peek(1) == '/') {
        SkipLine();
      } else if (text_[at_] == '/' && Peek(1) == '*') {
        const size_t close = text_.find("*/", at_ + 2);
        at_ = close == std::string_view::npos ? text_.size() : close + 2;
      } else {
        return;
      }
    }
  }

  // To the line end that no continuation hides.
  void SkipLine() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      const size_t length = Continuation(at_);
      at_ += length > 0 ? length : 1;
    }
  }

  void Add(size_t begin, TokenKind kind) {
    tokens_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(at_), kind, in_directive_});
  }

  void EndDirective() {
    if (!in_directive_) return;
    Add(at_, TokenKind::kDirectiveEnd);
    in_directive_ = false;
    expect_header_ = false;
  }

  void LexToken() {
    const size_t begin = at_;
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '#' && line_start_ && !in_directive_) {
      in_directive_ = true;
      ++at_;
      Add(begin, TokenKind::kHash);
      return;
    }
    if (expect_header_ && c == '<') {
      const size_t close = text_.find_first_of(">\n", at_);
      if (close != std::string_view::npos && text_[close] == '>') {
        at_ = close + 1;
        Add(begin, TokenKind::kHeaderName);
        return;
      }
    }
    if (IsIdentifierStart(c)) {
      LexIdentifierOrPrefixedString(begin);
    } else if (IsDigit(c) || (c == '.' && IsDigit(static_cast<unsigned char>(Peek(1))))) {
      LexNumber();
      Add(begin, TokenKind::kNumber);
    } else if (c == '"') {
      LexQuoted('"');
      Add(begin, TokenKind::kString);
    } else if (c == '\'') {
      LexQuoted('\'');
      Add(begin, TokenKind::kCharacter);
    } else {
      at_ += PunctuatorLength();
      Add(begin, TokenKind::kPunctuator);
    }
  }

  void LexIdentifierOrPrefixedString(size_t begin) {
    while (at_ < text_.size() && IsIdentifierPart(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (Peek() == '"' && (name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R")) {
      LexRawString();
      Add(begin, TokenKind::kString);
      return;
    }
    if ((Peek() == '"' || Peek() == '\'') && (name == "L" || name == "u" || name == "U" || name == "u8")) {
      const char quote = Peek();
      LexQuoted(quote);
      Add(begin, quote == '"' ? TokenKind::kString : TokenKind::kCharacter);
      return;
    }
    const bool include = in_directive_ && !tokens_.empty() && tokens_.back().kind == TokenKind::kHash &&
                         (name == "include" || name == "include_next" || name == "import");
    Add(begin, TokenKind::kIdentifier);
    expect_header_ = include;
  }

  // A preprocessing number: digits, letters, dots, digit separators, and signs behind an exponent letter.
  void LexNumber() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool sign = (c == '+' || c == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E' ||
                                                   text_[at_ - 1] == 'p' || text_[at_ - 1] == 'P');
      const bool separator = c == '\'' && IsIdentifierPart(static_cast<unsigned char>(Peek(1)));
      if (at_ > 0 && sign && !HexDigitsBefore()) {
        ++at_;
      } else if (IsIdentifierPart(static_cast<unsigned char>(c)) || c == '.' || separator) {
        ++at_;
      } else {
        return;
      }
    }
  }

  // Whether the number so far is hexadecimal and ends in a digit e: 0xe+1 is a sum.
  bool HexDigitsBefore() const {
    size_t begin = at_;
    while (begin > 0 && (IsIdentifierPart(static_cast<unsigned char>(text_[begin - 1])) || text_[begin - 1] == '.')) {
      --begin;
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    return number.size() > 1 && number[0] == '0' && (number[1] == 'x' || number[1] == 'X') &&
           (number.back() == 'e' || number.back() == 'E');
  }

  // To the closing quote, or to the line end when there is none on the line.
  void LexQuoted(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (const size_t length = Continuation(at_); length > 0) {
        at_ += length;
      } else if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        at_ += 2;
      } else if (text_[at_++] == quote) {
        return;
      }
    }
  }

  void LexRawString() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) {  // a delimiter has at most 16 characters
      LexQuoted('"');
      return;
    }
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = text_.find(close, open);
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
  }

  size_t PunctuatorLength() const {
    for (const std::string_view longer : {"<<<", "<<", "::", "->", "##", "&&", "||"}) {
      if (text_.substr(at_, longer.size()) == longer) return longer.size();
    }
    return 1;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool line_start_ = true;
  bool in_directive_ = false;
  bool expect_header_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Lex(std::string_view text) { return Lexer(text).Run(); }

}  // namespace portolan
