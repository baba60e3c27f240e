// Tensor-core code. rocWMMA has nvcuda::wmma's interface for the shapes of the matrix cores; nothing has mma.sync's.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyTensorCores(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (input.IsDead(i) || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    if (source.Is(i, "<mma.h>") && source.Is(i - 1, "include")) {
      output->Find(source, i, FindingLevel::kError, "tensor-core", "HIP has no mma.h",
                   "port: rocWMMA's header, whose fragments have the same interface for most shapes");
      output->Replace(source, i, "<rocwmma/rocwmma.hpp>");
    } else if (input.IsFreeName(i, "nvcuda")) {
      // using namespace nvcuda; ... wmma::x       nvcuda::wmma::x
      if (source.Is(i + 1, "::") && source.Is(i + 2, "wmma")) {
        output->edits.push_back({source.tokens()[i].begin, source.tokens()[i + 2].end, "rocwmma"});
      } else if (source.Is(i - 1, "namespace") && i >= 2 && source.Is(i - 2, "using") && source.Is(i + 1, ";")) {
        output->edits.push_back({source.tokens()[i - 2].begin, source.tokens()[i].end, "namespace wmma = rocwmma"});
      }
    }
  }
}

}  // namespace portolan
