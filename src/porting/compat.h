#pragma once

#include <set>
#include <string>
#include <string_view>

namespace portolan {

// File name of the generated compatibility header.
constexpr const char* kCompatHeaderName = "portolan_hip.h";

// The text of the compatibility header that holds `parts` ("warp_shuffle", "cg_reduce" ...) and what they need; each
// part says why it exists. Unknown names are a bug. `parts` empty: a header with the includes only.
std::string CompatHeader(const std::set<std::string>& parts);

// The same without the head of the file: the parts alone.
std::string CompatPartsText(const std::set<std::string>& parts);

// The parts that a header written by CompatHeader holds.
std::set<std::string> PartsOfCompatHeader(std::string_view header);

// Names of all parts.
std::set<std::string> CompatParts();

// The part that defines `portolan::<name>` for a CUDA device function such as "__shfl_sync"; "" when there is none.
std::string_view CompatPartOf(std::string_view cuda_function);

}  // namespace portolan
