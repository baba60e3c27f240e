#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "porting/source.h"
#include "porting/target.h"

namespace portolan {

// `extern __shared__ T name[];` outside of functions: there is no such thing on the host, so each function that uses
// the name gets a declaration of its own.
struct SharedArrayDeclaration {
  std::string type;
  std::string brackets;
};
using SharedArrays = std::map<std::string, SharedArrayDeclaration, std::less<>>;

// Adds the dynamic shared arrays that `source` declares outside of functions.
void CollectSharedArrays(const SourceFile& source, SharedArrays* arrays);

// A CUDA or HIP source as C++ for the headers of src/host_gpu/include: launches become calls, __shared__ variables
// references into the block's shared memory, PTX that has an equivalent C++ and other assembly of device code the end
// of the program that comes to it. All else is the headers' business. Lines keep their numbers.
std::string TranslateForHost(const SourceFile& source, const SharedArrays& arrays, const PortTarget& target);

// Other values of macros and constants (`#define N 1048576`, `const int n = 1 << 20;`, `constexpr size_t ...`), by
// name: a program whose sizes are in its source becomes a smaller one. Adds to `found` the names that were there.
std::string SetConstants(const SourceFile& source, const std::map<std::string, std::string>& values,
                         std::set<std::string>* found);

// HIP's names as CUDA's, for which the headers are written; the same for a HIP source as HipToCudaName and
// HipToCudaHeader say, and nothing else: conditions on HIP's macros stay.
std::string RenameToCuda(const SourceFile& source);

}  // namespace portolan
