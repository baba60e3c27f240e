#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "porting/source.h"

namespace portolan {

// What one file needs to know of all the others.
struct ProjectFacts {
  // Names that the project itself defines as macros, functions, types or variables and that look like CUDA's: they are
  // the project's, and stay.
  std::set<std::string, std::less<>> own_names;
  // Macros and constants with an integer value. A name with two values in the project is left out.
  std::map<std::string, long long, std::less<>> constants;
  std::set<std::string, std::less<>> ambiguous_constants;
  std::set<std::string, std::less<>> macros;  // of those constants: they mean the same in every scope
  // Macros with a default (#ifndef NAME): the build may give them another value.
  std::set<std::string, std::less<>> defaults;
  std::set<std::string, std::less<>> kernels;  // names of all __global__ functions
  // Threads of a block at the launches of a kernel; 0 for a size that is no constant, and for a kernel that is also
  // used otherwise (handed to a function, cudaLaunchKernel).
  std::map<std::string, std::set<long long>, std::less<>> launched_blocks;
  // File names without folder: a quoted include of one of them is the project's own.
  std::set<std::string, std::less<>> file_names;
};

// Adds what `source` declares.
void CollectFacts(const SourceFile& source, ProjectFacts* facts);

// The token of the kernel's name in a launch whose <<< is at `chevrons`, over kernel<T, 4><<<...>>> too; size() for
// none.
size_t LaunchedName(const SourceFile& source, size_t chevrons);

// Adds the kernel launches of `source`; needs the constants of all files.
void CollectLaunches(const SourceFile& source, ProjectFacts* facts);

// The value of an integer literal (any base, suffixes and digit separators); false for anything else.
bool ParseIntegerLiteral(std::string_view text, unsigned long long* value);

// The value of the tokens [begin, end): literals, the project's constants, + - * / % << >> and parentheses; false for
// anything else.
bool EvaluateConstant(const SourceFile& source, size_t begin, size_t end, const ProjectFacts& facts, long long* value);

}  // namespace portolan
