#include "porting/cmake_lexer.h"

#include <cctype>

#include "base/text.h"

namespace portolan {
namespace {

bool IsNameByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<CMakeCommand> Run() {
    std::vector<CMakeCommand> commands;
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        SkipComment();
      } else if (IsNameByte(text_[at_])) {
        CMakeCommand command;
        command.name_begin = Offset();
        while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
        command.name_end = Offset();
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
        if (at_ >= text_.size() || text_[at_] != '(') continue;
        ++at_;
        command.name = LowerCase(text_.substr(command.name_begin, command.name_end - command.name_begin));
        if (ReadArguments(&command)) commands.push_back(std::move(command));
      } else {
        ++at_;
      }
    }
    return commands;
  }

 private:
  uint32_t Offset() const { return static_cast<uint32_t>(at_); }

  // [[, [=[ and so on: the number of = plus one; 0 for no bracket.
  size_t BracketAt(size_t at) const {
    if (at >= text_.size() || text_[at] != '[') return 0;
    size_t end = at + 1;
    while (end < text_.size() && text_[end] == '=') ++end;
    return end < text_.size() && text_[end] == '[' ? end - at : 0;
  }

  void SkipBracket(size_t level) {
    std::string closing = "]";
    closing.append(level - 1, '=').append("]");
    const size_t end = text_.find(closing, at_ + level + 1);
    at_ = end == std::string_view::npos ? text_.size() : end + closing.size();
  }

  void SkipComment() {
    const size_t level = BracketAt(at_ + 1);
    if (level > 0) {
      ++at_;
      SkipBracket(level);
      return;
    }
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  void SkipQuoted() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
  }

  bool ReadArguments(CMakeCommand* command) {
    int depth = 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ')') {
        ++at_;
        if (--depth == 0) {
          command->end = Offset();
          return true;
        }
      } else if (c == '(') {
        ++depth;
        ++at_;
      } else if (c == '#') {
        SkipComment();
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else {
        CMakeArgument argument;
        argument.begin = Offset();
        const size_t level = BracketAt(at_);
        argument.quoted = level > 0 || c == '"';
        if (level > 0) {
          SkipBracket(level);
        } else if (c == '"') {
          SkipQuoted();
        } else {
          while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0 && text_[at_] != '(' &&
                 text_[at_] != ')' && text_[at_] != '#') {
            if (text_[at_] == '"') {
              SkipQuoted();
            } else {
              at_ += text_[at_] == '\\' ? 2 : 1;
            }
          }
          at_ = std::min(at_, text_.size());
        }
        argument.end = Offset();
        command->arguments.push_back(argument);
      }
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<CMakeCommand> LexCMake(std::string_view text) { return Lexer(text).Run(); }

}  // namespace portolan
