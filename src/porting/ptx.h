#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace portolan {

// C++ for one PTX instruction. `text` is the template of an asm statement (quotes removed, %% or % before a register
// name); `operands` are the expressions of its operands %0, %1 ... as written. Returns "" for what it does not know:
// more than one instruction, memory operands, another opcode. Otherwise an expression statement without its semicolon;
// `part` is the part of the compatibility header that it needs, or "".
std::string TranslatePtx(std::string_view text, const std::vector<std::string>& operands, std::string* part);

}  // namespace portolan
