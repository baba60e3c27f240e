#include "select/kernel.h"

namespace portolan {

const char* KernelFamilyName(KernelFamily family) {
  switch (family) {
    case KernelFamily::kTriton:
      return "triton";
    case KernelFamily::kCublasLt:
      return "cublaslt";
    case KernelFamily::kTensile:
      return "tensile";
    case KernelFamily::kAiter:
      return "aiter";
    case KernelFamily::kCpu:
      return "cpu";
  }
  return "?";
}

std::optional<KernelFamily> ParseKernelFamily(std::string_view name) {
  for (int i = 0; i < kKernelFamilyCount; ++i) {
    const auto family = static_cast<KernelFamily>(i);
    if (name == KernelFamilyName(family)) return family;
  }
  return std::nullopt;
}

void ForgetProblem(GemmKernel* kernel) {
  kernel->rank = -1;
  if (kernel->family == KernelFamily::kCublasLt) kernel->extra[0] = -1;
}

}  // namespace portolan
