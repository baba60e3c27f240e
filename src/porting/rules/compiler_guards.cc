// HIP's compiler defines none of __CUDA_ARCH__, __CUDACC__, __NVCC__, and CUDA_VERSION is nobody's. A conditional that
// tests one and no macro of HIP's is given HIP's meaning; one that names a HIP macro was written for both and stays.

#include <fmt/format.h>

#include "porting/condition.h"
#include "porting/rules/rules.h"

namespace portolan {
namespace {

bool IsArchitecture(std::string_view name) { return name == "__CUDA_ARCH__"; }
bool IsRelease(std::string_view name) { return name == "CUDA_VERSION" || name == "CUDART_VERSION"; }
bool IsCompiler(std::string_view name) { return name == "__CUDACC__" || name == "__NVCC__"; }

// Whether the branch compares the macro (rather than asking whether it is defined).
bool IsCompared(const SourceFile& source, size_t i) {
  const bool asked = source.Is(i - 1, "defined") || (source.Is(i - 1, "(") && source.Is(i - 2, "defined")) ||
                     source.Is(i - 1, "ifdef") || source.Is(i - 1, "ifndef");
  return !asked;
}

// Whether a branch only tells the grid's dependents to start (programmatic dependent launch), which HIP does not have
// and which is no loss: without it they start at the grid's end.
bool OnlyStartsDependents(const SourceFile& source, const Conditional::Branch& branch) {
  bool found = false;
  for (size_t i = branch.directive_end; i < branch.end; ++i) {
    if (!source.IsIdentifier(i)) continue;
    const std::string_view name = source.Text(i);
    if (name != "cudaTriggerProgrammaticLaunchCompletion" && name != "cudaGridDependencySynchronize") return false;
    found = true;
  }
  return found;
}

}  // namespace

void ApplyCompilerGuards(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (const Conditional& conditional : source.conditionals()) {
    if (conditional.names_hip) continue;
    bool has_else = false;
    for (const Conditional::Branch& branch : conditional.branches) has_else = has_else || branch.is_else;
    for (const Conditional::Branch& branch : conditional.branches) {
      if (branch.is_else || input.IsDead(branch.hash)) continue;
      bool found = false;
      for (size_t i = branch.condition; i < branch.directive_end; ++i) {
        if (!source.IsIdentifier(i)) continue;
        const std::string_view name = source.Text(i);
        if (IsRelease(name) && IsCompared(source, i) && input.project.own_names.count(name) == 0) {
          output->Replace(source, i, "PORTOLAN_CUDA_VERSION");
          output->compat.insert("cuda_version");
          continue;
        }
        if ((name == "__CUDACC_VER_MAJOR__" || name == "__CUDACC_VER_MINOR__") && IsCompared(source, i)) {
          output->Replace(source, i,
                          name == "__CUDACC_VER_MAJOR__" ? "PORTOLAN_CUDACC_MAJOR" : "PORTOLAN_CUDACC_MINOR");
          output->compat.insert("cuda_version");
          continue;
        }
        if ((!IsArchitecture(name) && !IsCompiler(name)) || input.project.own_names.count(name) > 0) continue;
        const bool compared = IsCompared(source, i);
        const bool in_device_code = source.EnclosingDeviceFunction(branch.hash) != nullptr;
        // Renamed only, the macros are undefined. What is compiled all the same is no finding; one a branch is enough.
        const bool lost = !found && EvaluateForHip(source, branch, CudaMacros::kUndefined) != Truth::kTrue;
        found = true;
        if (IsArchitecture(name)) {
          if (lost && !OnlyStartsDependents(source, branch)) {
            // What CUDA leaves out for some chips too cannot be what every result depends on.
            const bool always = EvaluateForHip(source, branch, CudaMacros::kPorted) != Truth::kFalse;
            output->Find(source, branch.hash,
                         !has_else && in_device_code && always ? FindingLevel::kError : FindingLevel::kWarning,
                         "compiler-guard",
                         has_else ? "HIP does not define __CUDA_ARCH__: the #else branch is compiled instead"
                         : always ? "HIP does not define __CUDA_ARCH__: the code under it is not compiled"
                                  : "HIP does not define __CUDA_ARCH__: the code under it, which is for some of "
                                    "NVIDIA's chips, is not compiled",
                         compared ? "port: compares PORTOLAN_CUDA_ARCH (700 in device code) instead"
                                  : "port: asks for __HIP_DEVICE_COMPILE__ instead");
          }
          output->Replace(source, i, compared ? "PORTOLAN_CUDA_ARCH" : "__HIP_DEVICE_COMPILE__");
          if (compared) output->compat.insert("cuda_arch");
        } else {
          if (lost) {
            output->Find(source, branch.hash, FindingLevel::kWarning, "compiler-guard",
                         fmt::format("HIP's compiler does not define {}: the code under it is not compiled", name),
                         "port: asks for __HIPCC__ instead");
          }
          output->Replace(source, i, "__HIPCC__");
        }
      }
    }
  }
}

}  // namespace portolan
