#include "porting/ptx.h"

#include <algorithm>
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

// Text between commas that stand in no bracket.
std::vector<std::string_view> SplitOperands(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    parts.push_back(Trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

PtxInstruction ReadInstruction(std::string_view text) {
  PtxInstruction instruction;
  const size_t space = std::min(text.find_first_of(" \t"), text.size());
  instruction.opcode = text.substr(0, space);
  for (std::string_view rest = instruction.opcode; !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    instruction.suffixes.push_back(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  if (!Trim(text.substr(space)).empty()) instruction.operands = SplitOperands(text.substr(space));
  return instruction;
}

std::string TranslateOne(std::string_view text, const std::vector<std::string>& operands,
                         std::set<std::string>* parts) {
  const PtxInstruction instruction = ReadInstruction(text);
  const std::vector<std::string_view>& names = instruction.operands;
  if (instruction.opcode.substr(0, 9) == "prefetch.") return "(void)0";
  if (const auto statement = Statements().find(instruction.opcode); statement != Statements().end()) {
    // A barrier other than the block's, or of some of its threads, is another one.
    const bool barrier = instruction.suffixes[0] == "bar" || instruction.suffixes[0] == "barrier";
    if (barrier && (names.size() != 1 || names[0] != "0")) return {};
    return std::string(statement->second.expression);
  }
  const auto add_part = [parts](std::string_view part) {
    if (!part.empty()) parts->emplace(part);
  };
  if (names.size() == 2 && instruction.suffixes[0] == "mov" && !names[1].empty() && names[1][0] == '%') {
    const size_t first = names[1].find_first_not_of('%');
    if (first == std::string_view::npos) return {};
    if (const auto value = Registers().find(names[1].substr(first)); value != Registers().end()) {
      const std::string target = PtxOperand(names[0], operands);
      if (target.empty()) return {};
      add_part(value->second.part);
      return target + " = " + std::string(value->second.expression);
    }
  }
  const auto known = Instructions().find(instruction.opcode);
  if (known == Instructions().end()) return TranslatePtxMove(instruction, operands, parts);
  if (names.size() < 2 || names[0].empty() || names[0][0] != '%') return {};
  const std::string target = PtxOperand(names[0], operands);
  if (target.empty()) return {};
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
    const std::string operand = PtxOperand(names[index], operands);
    if (operand.empty()) return {};
    result += operand;
    highest = std::max(highest, index);
  }
  if (highest + 1 != names.size()) return {};
  add_part(known->second.part);
  return result;
}

// .reg .pred p; setp.ne.b32 p, %0, 0; @p ...; @!p ...: an if for each of the instructions behind; "" for others.
std::string TranslatePredicated(const std::vector<std::string_view>& instructions,
                                const std::vector<std::string>& operands, std::set<std::string>* parts) {
  const PtxInstruction declared = ReadInstruction(instructions[0]);
  if (declared.opcode != ".reg" || declared.operands.size() != 1 || instructions.size() < 3) return {};
  constexpr std::string_view kPredicate = ".pred";
  if (declared.operands[0].substr(0, kPredicate.size()) != kPredicate) return {};
  const std::string_view name = Trim(declared.operands[0].substr(kPredicate.size()));
  const PtxInstruction set = ReadInstruction(instructions[1]);
  if (set.suffixes.size() != 3 || set.suffixes[0] != "setp" || (set.suffixes[1] != "ne" && set.suffixes[1] != "eq") ||
      set.operands.size() != 3 || set.operands[0] != name || set.operands[2] != "0") {
    return {};
  }
  const std::string value = PtxOperand(set.operands[1], operands);
  if (value.empty()) return {};
  std::string result = "do {";
  for (size_t i = 2; i < instructions.size(); ++i) {
    std::string_view text = instructions[i];
    if (text.empty() || text[0] != '@') return {};
    text.remove_prefix(1);
    const bool negated = !text.empty() && text[0] == '!';
    if (negated) text.remove_prefix(1);
    if (text.substr(0, name.size()) != name || text.find_first_of(" \t") != name.size()) return {};
    const std::string statement = TranslateOne(Trim(text.substr(name.size())), operands, parts);
    if (statement.empty()) return {};
    const bool zero = negated != (set.suffixes[1] == "eq");
    result += " if ((" + value + (zero ? ") == 0) " : ") != 0) ") + statement + ";";
  }
  return result + " } while (0)";
}

}  // namespace

std::string PtxOperand(std::string_view text, const std::vector<std::string>& operands) {
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

std::string TranslatePtx(std::string_view text, const std::vector<std::string>& operands,
                         std::set<std::string>* parts) {
  std::string clean;  // \n and \t of the literal are blanks
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == 't')) {
      clean.push_back(' ');
      ++i;
    } else {
      clean.push_back(text[i]);
    }
  }
  std::string_view body = Trim(clean);
  if (body.size() >= 2 && body.front() == '{' && body.back() == '}') body = Trim(body.substr(1, body.size() - 2));
  std::vector<std::string_view> instructions;
  while (!body.empty()) {
    const size_t end = std::min(body.find(';'), body.size());
    if (const std::string_view one = Trim(body.substr(0, end)); !one.empty()) instructions.push_back(one);
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  if (instructions.empty()) return {};
  std::set<std::string> needed;
  const std::string result = instructions.size() == 1 ? TranslateOne(instructions[0], operands, &needed)
                                                      : TranslatePredicated(instructions, operands, &needed);
  if (!result.empty()) parts->insert(needed.begin(), needed.end());
  return result;
}

}  // namespace portolan
