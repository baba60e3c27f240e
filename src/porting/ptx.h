#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace portolan {

// C++ for the PTX of one asm statement. `text` is its template (quotes removed, %% or % before a register name);
// `operands` are the expressions of its operands %0, %1 ... as written. Several instructions may declare registers and
// predicates. Returns "" when one of them is not known, otherwise a statement without its semicolon; adds to `parts`
// what it needs of the compatibility header.
std::string TranslatePtx(std::string_view text, const std::vector<std::string>& operands, std::set<std::string>* parts);

// One instruction, as PTX writes it: opcode with its suffixes, then its operands, without predicate and semicolon.
struct PtxInstruction {
  std::string_view opcode;
  std::vector<std::string_view> suffixes;  // of the opcode: {"ld", "global", "v4", "b32"}
  std::vector<std::string_view> operands;  // %0, [%1+16], {%0, %1}
};

// The expression of an operand %2 or of a number; "" for anything else.
std::string PtxOperand(std::string_view text, const std::vector<std::string>& operands);

// The C++ type of a PTX type (u32); "" for others.
std::string_view PtxType(std::string_view type);

// C++ for what moves data: ld, st, cp.async, mov of whole and packed registers, shfl.sync, atom and red; "" for others.
std::string TranslatePtxMove(const PtxInstruction& instruction, const std::vector<std::string>& operands,
                             std::set<std::string>* parts);

}  // namespace portolan
