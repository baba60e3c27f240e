#pragma once

#include <cstdint>

#include "porting/source.h"

namespace portolan {

// Three-valued logic: the compiler's answer where it is known.
enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

Truth Or(Truth a, Truth b);
Truth And(Truth a, Truth b);
Truth Not(Truth a);

// What becomes of __CUDA_ARCH__, __CUDACC__ and __NVCC__, which HIP's compiler does not define.
enum class CudaMacros : uint8_t {
  kUndefined,  // as they are: the sources are only renamed
  kPorted,     // the port replaces them by HIP's, and __CUDA_ARCH__ in comparisons by kPortedArchitecture
};

// The value with which device code is compared as if with __CUDA_ARCH__ (compat/cuda_arch.hip.inc says why).
constexpr long long kPortedArchitecture = 700;

// The release of CUDA's compiler that comparisons with __CUDACC_VER_MAJOR__ and _MINOR__ see
// (compat/cuda_version.hip.inc).
constexpr long long kPortedCompilerMajor = 12;
constexpr long long kPortedCompilerMinor = 2;

// What HIP's compiler for AMD makes of a branch's condition: integers and HIP's own macros are known, and CUDA's as
// `macros` says; everything else is not. `branch` is an #if, #ifdef, #ifndef or #elif.
Truth EvaluateForHip(const SourceFile& source, const Conditional::Branch& branch, CudaMacros macros);

}  // namespace portolan
