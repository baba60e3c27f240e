#include "porting/ptx.h"

#include <unordered_map>

namespace portolan {
namespace {

struct Value {
  std::string_view expression;
  std::string_view part;
};

using Table = std::unordered_map<std::string_view, Value>;

const Table& Instructions() {
  static const auto* table = new Table{
#define PTX(opcode, expression, part) {opcode, {expression, part}},
#define REGISTER(name, expression, part)
#define NO_VALUE(opcode, statement)
#include "porting/ptx.inc"
#undef PTX
#undef REGISTER
#undef NO_VALUE
  };
  return *table;
}

const Table& Registers() {
  static const auto* table = new Table{
#define PTX(opcode, expression, part)
#define REGISTER(name, expression, part) {name, {expression, part}},
#define NO_VALUE(opcode, statement)
#include "porting/ptx.inc"
#undef PTX
#undef REGISTER
#undef NO_VALUE
  };
  return *table;
}

const Table& Statements() {
  static const auto* table = new Table{
#define PTX(opcode, expression, part)
#define REGISTER(name, expression, part)
#define NO_VALUE(opcode, statement) {opcode, {statement, ""}},
#include "porting/ptx.inc"
#undef PTX
#undef REGISTER
#undef NO_VALUE
  };
  return *table;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// The expression of one operand of the instruction: %2 or a number; "" for anything else.
std::string Operand(std::string_view text, const std::vector<std::string>& operands) {
  if (text.size() >= 2 && text[0] == '%' && text[1] >= '0' && text[1] <= '9') {
    size_t index = 0;
    for (const char c : text.substr(1)) {
      if (c < '0' || c > '9' || index > 99) return {};
      index = index * 10 + static_cast<size_t>(c - '0');
    }
    return index < operands.size() ? operands[index] : std::string();
  }
  if (text.empty() || text[0] < '0' || text[0] > '9') return {};
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == 'x' || c == 'X'))
      return {};
  }
  return std::string(text);
}

}  // namespace

std::string TranslatePtx(std::string_view text, const std::vector<std::string>& operands, std::string* part) {
  part->clear();
  std::string clean;  // \n and \t of the literal are blanks
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == 't')) {
      clean.push_back(' ');
      ++i;
    } else {
      clean.push_back(text[i]);
    }
  }
  std::string_view instruction = Trim(clean);
  if (instruction.size() >= 2 && instruction.front() == '{' && instruction.back() == '}') {
    instruction = Trim(instruction.substr(1, instruction.size() - 2));
  }
  if (!instruction.empty() && instruction.back() == ';')
    instruction = Trim(instruction.substr(0, instruction.size() - 1));
  if (instruction.find_first_of(";{}[@") != std::string_view::npos) {
    const std::string_view opcode = instruction.substr(0, instruction.find_first_of(" \t"));
    const bool one = instruction.find_first_of(";{}@") == std::string_view::npos;
    return one && opcode.substr(0, 9) == "prefetch." ? "(void)0" : "";
  }
  const size_t space = std::min(instruction.find_first_of(" \t"), instruction.size());
  const std::string_view opcode = instruction.substr(0, space);
  if (const auto statement = Statements().find(opcode); statement != Statements().end()) {
    return std::string(statement->second.expression);
  }
  std::vector<std::string_view> names;
  for (std::string_view rest = instruction.substr(space); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(Trim(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (names.size() < 2) return {};
  const std::string target = Operand(names[0], operands);
  if (target.empty() || names[0][0] != '%') return {};
  if (opcode.substr(0, 4) == "mov.") {
    const size_t first = names[1].find_first_not_of('%');
    if (names.size() != 2 || first == 0 || first == std::string_view::npos) return {};
    const auto value = Registers().find(names[1].substr(first));
    if (value == Registers().end()) return {};
    *part = value->second.part;
    return target + " = " + std::string(value->second.expression);
  }
  const auto known = Instructions().find(opcode);
  if (known == Instructions().end()) return {};
  std::string result = target + " = ";
  size_t highest = 0;
  const std::string_view expression = known->second.expression;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '$') {
      result.push_back(expression[i]);
      continue;
    }
    const size_t index = static_cast<size_t>(expression[++i] - '0');
    if (index >= names.size()) return {};
    const std::string operand = Operand(names[index], operands);
    if (operand.empty()) return {};
    result += operand;
    highest = std::max(highest, index);
  }
  if (highest + 1 != names.size()) return {};
  *part = known->second.part;
  return result;
}

}  // namespace portolan
