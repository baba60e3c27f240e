// What HIP's half and bfloat16 lack: atomicAdd (before 7.1), operators in host code (before 7). Types need a compiler
// to be known, so a file that includes either header and has the call or operator gets the overloads; they hurt nobody.
// And hipBLAS's own half.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyHalfPrecision(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  bool atomics = false;
  bool host = false;
  bool wmma = false;  // rocWMMA brings all operators but the minus sign
  for (size_t i = 1; i < source.size(); ++i) {
    if (input.IsDead(i)) continue;
    const std::string_view text = source.Text(i);
    if (source.Is(i - 1, "include") && text.size() > 2 && input.target.RocmBefore(7, 0)) {
      const std::string_view header = text.substr(1, text.size() - 2);
      host = host || header == "cuda_fp16.h" || header == "cuda_fp8.h";
      wmma = wmma || header == "mma.h";
    }
    if (text.substr(0, 11) == "cublasHgemm" && input.IsFreeName(i, text)) output->compat.insert("blas_half");
    const bool half = text == "half" || text == "__half" || text == "half2" || text == "__half2" ||
                      text == "__nv_bfloat16" || text == "__nv_bfloat162";
    atomics = atomics || half;
  }
  if (host || wmma) output->compat.insert(wmma ? "half_minus" : "half_host");
  if (!atomics || input.target.RocmBefore(7, 1) == false) return;
  for (size_t i = 0; i < source.size(); ++i) {
    if (input.IsFreeName(i, "atomicAdd") && source.Is(i + 1, "(") && source.EnclosingDeviceFunction(i) != nullptr) {
      output->compat.insert("half_atomics");
      return;
    }
  }
}

}  // namespace portolan
