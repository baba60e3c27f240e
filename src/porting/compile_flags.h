#pragma once

#include <string>
#include <vector>

namespace portolan {

// Compiler flags of a source as far as the project tells them without being built.
struct CompileFlags {
  std::vector<std::string> flags;  // -D, -U, -I, -isystem, -include and -std; folders are absolute
  bool relocatable = false;        // -fgpu-rdc, -rdc=true or -dc: device symbols may come from another file
};

// The flags of files below `root`, which is a ported project. Per file, from the first that speaks of it:
// compile_commands.json of the root or of its build folder; the Makefile of its folder or of the nearest folder above
// (words without a variable in them); CMakeLists.txt (include_directories, target_include_directories, add_definitions,
// add_compile_definitions, CMAKE_CXX_STANDARD and CMAKE_CUDA_STANDARD). To these come the folders in which the project
// itself has the headers that its sources name, so that most projects need no flags at all.
class ProjectFlags {
 public:
  // `sources` and `all_files` are relative to `root`.
  ProjectFlags(std::string root, const std::vector<std::string>& sources, const std::vector<std::string>& all_files);

  // `extra` (from the command line) comes last and so wins.
  CompileFlags Of(const std::string& source) const;

 private:
  std::string root_;
  std::vector<std::string> include_folders_;
};

// -D, -U, -I, -isystem, -include and -std among the words of a command or a Makefile; relative folders become absolute
// by `folder`. Words with a $ are left out, as nobody has expanded them.
CompileFlags FlagsAmong(const std::vector<std::string>& words, const std::string& folder);

// The words of a shell command: blanks separate, ' and " quote, \ escapes.
std::vector<std::string> ShellWords(const std::string& command);

}  // namespace portolan
