#include "porting/ptx.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

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

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

// Several instructions, which may declare registers of their own: each becomes a variable.
class Block {
 public:
  explicit Block(const std::vector<std::string>& operands) : operands_(operands) {}

  std::string Translate(const std::vector<std::string_view>& instructions, std::set<std::string>* parts) {
    std::string result = "do {";
    for (const std::string_view instruction : instructions) {
      const bool declares = instruction.substr(0, 4) == ".reg";
      const std::string statement = declares ? Declare(instruction) : One(instruction, parts);
      if (statement.empty()) return {};
      result += " " + statement + ";";
    }
    return result + " } while (0)";
  }

 private:
  // .reg .b32 a, b: their C++, and an operand for each.
  std::string Declare(std::string_view text) {
    text = Trim(text.substr(4));
    const size_t space = std::min(text.find_first_of(" \t"), text.size());
    if (text.empty() || text[0] != '.') return {};
    const std::string_view type = text.substr(1, space - 1);
    const std::string_view cpp = type == "pred" ? std::string_view("bool") : PtxType(type);
    const std::vector<std::string_view> names = SplitOperands(text.substr(space));
    if (cpp.empty() || cpp.find("char") != std::string_view::npos) return {};
    const size_t before = operands_.size();
    std::string result(cpp);
    for (const std::string_view name : names) {
      if (name.empty() || !std::all_of(name.begin(), name.end(), IsNameCharacter)) return {};
      const size_t letters = name.find_first_not_of("%$");
      if (letters == std::string_view::npos || name.find_first_of("%$", letters) != std::string_view::npos) return {};
      const std::string variable = "portolan_" + std::string(name.substr(letters));
      result += (operands_.size() == before ? " " : ", ") + variable;
      registers_[std::string(name)] = operands_.size();
      operands_.push_back(variable);
    }
    return result;
  }

  // The text with %N for the names of own registers.
  std::string Named(std::string_view text) const {
    std::string result;
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      while (end < text.size() && IsNameCharacter(text[end])) ++end;
      const std::string name(text.substr(i, end - i));
      const auto own = registers_.find(name);
      if (end == i) result.push_back(text[end++]);
      result += own == registers_.end() ? name : "%" + std::to_string(own->second);
      i = end;
    }
    return result;
  }

  std::string One(std::string_view text, std::set<std::string>* parts) const {
    std::string condition;
    if (text[0] == '@') {
      const size_t space = text.find_first_of(" \t");
      if (space == std::string_view::npos) return {};
      const bool negated = text.size() > 1 && text[1] == '!';
      const auto own = registers_.find(std::string(text.substr(negated ? 2 : 1, space - (negated ? 2 : 1))));
      if (own == registers_.end()) return {};
      condition = std::string("if (") + (negated ? "!" : "") + operands_[own->second] + ") ";
      text = Trim(text.substr(space));
    }
    const size_t space = std::min(text.find_first_of(" \t"), text.size());
    const std::string named = std::string(text.substr(0, space)) + Named(text.substr(space));
    const PtxInstruction instruction = ReadInstruction(named);
    std::string statement;
    if (instruction.suffixes[0] == "setp") {
      statement = Compare(instruction);
    } else if (instruction.suffixes[0] == "selp" && instruction.operands.size() == 4) {
      std::string values[4];
      for (size_t i = 0; i < 4; ++i) {
        values[i] = PtxOperand(instruction.operands[i], operands_);
        if (values[i].empty()) return {};
      }
      statement = values[0] + " = " + values[3] + " ? (" + values[1] + ") : (" + values[2] + ")";
    } else {
      statement = TranslateOne(named, operands_, parts);
    }
    return statement.empty() ? statement : condition + statement;
  }

  // setp.lt.s32 p, a, b
  std::string Compare(const PtxInstruction& instruction) const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSigns = {{{"eq", "=="},
                                                                                       {"ne", "!="},
                                                                                       {"lt", "<"},
                                                                                       {"le", "<="},
                                                                                       {"gt", ">"},
                                                                                       {"ge", ">="},
                                                                                       {"lo", "<"},
                                                                                       {"ls", "<="},
                                                                                       {"hi", ">"},
                                                                                       {"hs", ">="}}};
    if (instruction.suffixes.size() != 3 || instruction.operands.size() != 3) return {};
    const std::string_view type = PtxType(instruction.suffixes[2]);
    std::string values[3];
    for (size_t i = 0; i < 3; ++i) {
      values[i] = PtxOperand(instruction.operands[i], operands_);
      if (values[i].empty()) return {};
    }
    for (const auto& [name, sign] : kSigns) {
      if (name != instruction.suffixes[1] || type.empty()) continue;
      const std::string cast = "static_cast<" + std::string(type) + ">(";
      return values[0] + " = " + cast + values[1] + ") " + std::string(sign) + " " + cast + values[2] + ")";
    }
    return {};
  }

  std::vector<std::string> operands_;
  std::unordered_map<std::string, size_t> registers_;
};

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
                                                      : Block(operands).Translate(instructions, &needed);
  if (!result.empty()) parts->insert(needed.begin(), needed.end());
  return result;
}

}  // namespace portolan
