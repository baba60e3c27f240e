// PTX that moves data between registers, lanes and memory. PTX ISA 8, chapters 9.7.9 (data movement), 9.7.13 (atomics).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <tuple>
#include <utility>

#include "porting/ptx.h"

namespace portolan {
namespace {

// What the suffixes between the opcode and the type say of an access.
struct Access {
  bool understood = true;
  bool is_volatile = false;
  bool acquires = false;
  bool releases = false;
  bool shared = false;
  std::string_view fence = "__threadfence()";
  size_t elements = 1;
};

// Of a load, a store or an atomic, whose `operation` is a suffix too.
Access ReadAccess(const PtxInstruction& instruction, std::string_view operation = {}) {
  Access access;
  for (size_t i = 1; i + 1 < instruction.suffixes.size(); ++i) {
    const std::string_view suffix = instruction.suffixes[i];
    if (suffix == "v2" || suffix == "v4") {
      access.elements = suffix == "v2" ? 2 : 4;
    } else if (suffix == "volatile" || suffix == "relaxed" || suffix == "mmio") {
      access.is_volatile = true;
    } else if (suffix == "acquire" || suffix == "release" || suffix == "acq_rel") {
      access.is_volatile = true;
      access.acquires = suffix != "release";
      access.releases = suffix != "acquire";
    } else if (suffix == "shared" || suffix == "shared::cta") {
      access.shared = true;
    } else if (suffix == "cta") {
      access.fence = "__threadfence_block()";
    } else if (suffix == "sys") {
      access.fence = "__threadfence_system()";
    } else {
      // Caches and hints. A space other than these two has addresses of its own.
      constexpr std::array<std::string_view, 10> kPlain = {"global", "gpu", "weak", "nc", "ca",
                                                           "cg",     "cs",  "lu",   "cv", "wb"};
      bool plain =
          suffix == operation || suffix == "wt" || suffix.substr(0, 4) == "L1::" || suffix.substr(0, 4) == "L2::";
      for (const std::string_view known : kPlain) plain = plain || known == suffix;
      access.understood = access.understood && plain;
    }
  }
  return access;
}

// [%4] or [%4+16] as a pointer to `type`; "" for anything else. The number of an address in `shared` memory may come in
// 64 bits, like a pointer.
std::string Address(std::string_view text, bool shared, std::string_view type,
                    const std::vector<std::string>& operands) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return {};
  text = text.substr(1, text.size() - 2);
  const size_t plus = text.find('+');
  const auto without_blanks = [](std::string_view part) {
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    return part;
  };
  const std::string base = PtxOperand(without_blanks(text.substr(0, plus)), operands);
  const std::string offset =
      plus == std::string_view::npos ? "0" : PtxOperand(without_blanks(text.substr(plus + 1)), operands);
  if (base.empty() || offset.empty() || without_blanks(text)[0] != '%') return {};
  if (shared) return fmt::format("portolan::ptx_address<{}>(static_cast<unsigned>({}), {})", type, base, offset);
  return fmt::format("portolan::ptx_address<{}>({}, {})", type, base, offset);
}

// "a, b" of {%0, %1} or of %0, which must be `count` registers or, where `numbers` says so, numbers; "" for others.
std::string Registers(std::string_view text, size_t count, bool numbers, const std::vector<std::string>& operands) {
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  std::string result;
  size_t found = 0;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    const std::string operand = PtxOperand(one, operands);
    if (operand.empty() || (!numbers && one[0] != '%')) return {};
    result += (found++ > 0 ? ", " : "") + operand;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return found == count ? result : std::string();
}

std::string Fenced(const Access& access, const std::string& statement) {
  if (!access.acquires && !access.releases) return statement;
  return fmt::format("do {{{} {};{} }} while (0)", access.releases ? fmt::format(" {};", access.fence) : "", statement,
                     access.acquires ? fmt::format(" {};", access.fence) : "");
}

std::string LoadOrStore(const PtxInstruction& instruction, const std::vector<std::string>& operands) {
  const bool load = instruction.suffixes[0] != "st";
  const Access access = ReadAccess(instruction);
  const std::string_view type = PtxType(instruction.suffixes.back());
  if (!access.understood || type.empty() || instruction.operands.size() != 2) return {};
  const std::string address = Address(instruction.operands[load ? 1 : 0], access.shared, type, operands);
  const std::string values = Registers(instruction.operands[load ? 0 : 1], access.elements, !load, operands);
  if (address.empty() || values.empty()) return {};
  return Fenced(access, fmt::format("portolan::ptx_{}<{}, {}>({}, {})", load ? "load" : "store", type,
                                    access.is_volatile, address, values));
}

// cp.async.ca.shared.global [to], [from], 16 {, bytes that are given}
std::string AsyncCopy(const PtxInstruction& instruction, const std::vector<std::string>& operands) {
  if (instruction.suffixes.size() < 5 ||
      (instruction.suffixes[3] != "shared" && instruction.suffixes[3] != "shared::cta") ||
      instruction.suffixes[4] != "global")
    return {};
  const std::vector<std::string_view>& names = instruction.operands;
  if (names.size() != 3 && names.size() != 4) return {};
  const std::string to = Address(names[0], true, "unsigned", operands);
  const std::string from = Address(names[1], false, "const unsigned", operands);
  const std::string size = PtxOperand(names[2], operands);
  const std::string given = names.size() == 4 ? PtxOperand(names[3], operands) : size;
  if (to.empty() || from.empty() || size.empty() || given.empty()) return {};
  return fmt::format("portolan::cp_async({}, {}, {}, {})", to, from, size, given);
}

std::string Move(const PtxInstruction& instruction, const std::vector<std::string>& operands) {
  const std::string_view type = PtxType(instruction.suffixes.back());
  if (type.empty() || instruction.suffixes.size() != 2 || instruction.operands.size() != 2) return {};
  const bool unpacks = instruction.operands[0].substr(0, 1) == "{";
  const bool packs = instruction.operands[1].substr(0, 1) == "{";
  const std::string to = Registers(instruction.operands[0], unpacks ? 2 : 1, false, operands);
  const std::string from = Registers(instruction.operands[1], packs ? 2 : 1, true, operands);
  if (to.empty() || from.empty() || (packs && unpacks)) return {};
  if (packs || unpacks) return fmt::format("portolan::ptx_{}({}, {})", packs ? "pack" : "unpack", to, from);
  return fmt::format("portolan::ptx_assign({}, {})", to,
                     instruction.operands[1][0] == '%' ? from : fmt::format("static_cast<{}>({})", type, from));
}

// shfl.sync.bfly.b32 to, value, lane, clamp, mask: the clamp holds the width, and 31 (0 for up) where lanes are not
// cut.
std::string Shuffle(const PtxInstruction& instruction, const std::vector<std::string>& operands,
                    std::set<std::string>* parts) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kModes = {
      {{"bfly", "xor"}, {"up", "up"}, {"down", "down"}, {"idx", ""}}};
  if (instruction.suffixes.size() != 4 || instruction.suffixes[1] != "sync" || instruction.operands.size() != 5)
    return {};
  std::string values[5];
  for (size_t i = 0; i < 5; ++i) {
    values[i] = PtxOperand(instruction.operands[i], operands);
    if (values[i].empty()) return {};
  }
  unsigned long clamp = 0;
  if (values[3].find_first_not_of("0123456789abcdefxABCDEFX") != std::string::npos) return {};
  try {
    clamp = std::stoul(values[3], nullptr, 0);
  } catch (const std::exception&) {
    return {};
  }
  for (const auto& [mode, name] : kModes) {
    if (mode != instruction.suffixes[2]) continue;
    if ((clamp & 31) != (mode == "up" ? 0u : 31u) || (clamp >> 8) > 31) return {};
    parts->insert("warp_shuffle");
    return fmt::format("{} = portolan::shfl{}{}_sync({}, {}, {}, {})", values[0], name.empty() ? "" : "_", name,
                       values[4], values[1], values[2], 32 - (clamp >> 8));
  }
  return {};
}

// atom.add.f32 to, [address], value; red.add.f32 [address], value; atom.cas.b32 to, [address], compared, value.
std::string Atomic(const PtxInstruction& instruction, const std::vector<std::string>& operands) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOperations = {{{"add", "atomicAdd"},
                                                                                         {"min", "atomicMin"},
                                                                                         {"max", "atomicMax"},
                                                                                         {"and", "atomicAnd"},
                                                                                         {"or", "atomicOr"},
                                                                                         {"xor", "atomicXor"},
                                                                                         {"exch", "atomicExch"},
                                                                                         {"cas", "atomicCAS"}}};
  std::string_view function;
  std::string_view operation;
  for (const std::string_view suffix : instruction.suffixes) {
    for (const auto& [name, cpp] : kOperations) {
      if (suffix == name) std::tie(operation, function) = std::pair(name, cpp);
    }
  }
  const bool reduces = instruction.suffixes[0] == "red";
  const Access access = ReadAccess(instruction, operation);
  const std::string_view type = PtxType(instruction.suffixes.back());
  const bool wide = type == "long long" && operation == "add";  // CUDA and HIP have the unsigned one
  const std::string_view cpp = wide ? "unsigned long long" : type;
  const size_t count = (reduces ? 2 : 3) + (operation == "cas" ? 1 : 0);
  if (function.empty() || !access.understood || access.elements != 1 || type.empty() ||
      type.find("char") != type.npos || type.find("short") != type.npos || instruction.operands.size() != count) {
    return {};
  }
  const size_t at = reduces ? 0 : 1;
  std::string call = fmt::format("{}({}", function, Address(instruction.operands[at], access.shared, cpp, operands));
  for (size_t i = at + 1; i < count; ++i) {
    const std::string value = PtxOperand(instruction.operands[i], operands);
    if (value.empty()) return {};
    call += instruction.operands[i][0] == '%' ? fmt::format(", portolan::ptx_bits<{}>({})", cpp, value)
                                              : fmt::format(", static_cast<{}>({})", cpp, value);
  }
  call += ")";
  if (Address(instruction.operands[at], access.shared, cpp, operands).empty()) return {};
  if (reduces) return Fenced(access, call);
  const std::string to = PtxOperand(instruction.operands[0], operands);
  if (to.empty() || instruction.operands[0][0] != '%') return {};
  return Fenced(access, fmt::format("portolan::ptx_assign({}, {})", to, call));
}

}  // namespace

std::string_view PtxType(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kTypes = {{
      {"b8", "unsigned char"},
      {"u8", "unsigned char"},
      {"s8", "signed char"},
      {"b16", "unsigned short"},
      {"u16", "unsigned short"},
      {"s16", "short"},
      {"b32", "unsigned"},
      {"u32", "unsigned"},
      {"s32", "int"},
      {"f32", "float"},
      {"b64", "unsigned long long"},
      {"u64", "unsigned long long"},
      {"s64", "long long"},
      {"f64", "double"},
  }};
  for (const auto& [ptx, cpp] : kTypes) {
    if (ptx == type) return cpp;
  }
  return {};
}

std::string TranslatePtxMove(const PtxInstruction& instruction, const std::vector<std::string>& operands,
                             std::set<std::string>* parts) {
  if (instruction.suffixes.size() < 2) return {};
  const std::string_view opcode = instruction.suffixes[0];
  if (opcode == "shfl") return Shuffle(instruction, operands, parts);
  std::string result;
  if (opcode == "ld" || opcode == "ldu" || opcode == "st") result = LoadOrStore(instruction, operands);
  if (opcode == "cp" && instruction.suffixes[1] == "async") result = AsyncCopy(instruction, operands);
  if (opcode == "mov") result = Move(instruction, operands);
  if (opcode == "atom" || opcode == "red") result = Atomic(instruction, operands);
  if (!result.empty()) parts->insert("ptx_move");
  return result;
}

}  // namespace portolan
