#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portolan {

// One argument of a CMake command: [begin, end) of the text, quotes or brackets included.
struct CMakeArgument {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool quoted = false;  // "..." or [[...]]
};

// name(arguments) in a CMake file. Parentheses inside the arguments (as of if()) are not arguments.
struct CMakeCommand {
  std::string name;  // in lower case, as CMake reads it
  uint32_t name_begin = 0;
  uint32_t name_end = 0;
  uint32_t end = 0;  // behind the closing parenthesis
  std::vector<CMakeArgument> arguments;
};

// The commands of a CMake file in their order (cmake-language(7)); never fails: what is no command is skipped.
std::vector<CMakeCommand> LexCMake(std::string_view text);

}  // namespace portolan
