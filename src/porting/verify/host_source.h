#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "porting/source.h"

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
// references into the block's shared memory, PTX that has an equivalent C++. All else is the headers' business. Lines
// keep their numbers.
std::string TranslateForHost(const SourceFile& source, const SharedArrays& arrays);

// HIP's names as CUDA's, for which the headers are written; the same for a HIP source as HipToCudaName and
// HipToCudaHeader say, and nothing else: conditions on HIP's macros stay.
std::string RenameToCuda(const SourceFile& source);

}  // namespace portolan
