#pragma once

#include <string>
#include <string_view>

namespace portolan {

// What a word of a build file (a compiler, a flag, a library) is for HIP: false when it stays as it is; an empty `hip`
// means that it goes.
bool FindHipWord(std::string_view word, std::string_view* hip);

// Whether `word` names GPU architectures (-arch=sm_80, -gencode): --offload-arch stands for all of them together.
bool IsArchitectureWord(std::string_view word);

// Flags between blanks, semicolons, quotes and the signs of CMake's generator expressions, each mapped as in a
// Makefile.
std::string PortFlagText(const std::string& text);

}  // namespace portolan
