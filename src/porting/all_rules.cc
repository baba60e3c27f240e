#include "porting/rule.h"
#include "porting/rules/rules.h"

namespace portolan {

const std::vector<PortingRule>& AllPortingRules() {
  static const auto* rules = new std::vector<PortingRule>{
      {"include", "CUDA's headers become HIP's", ApplyIncludes},
      {"launch-call", "Launches become calls of hipLaunchKernelGGL, where asked for", ApplyLaunchCalls},
      {"symbol-argument", "A __device__ variable handed to the runtime goes through HIP_SYMBOL", ApplySymbolArguments},
      {"kernel-pointer", "A kernel handed to the runtime becomes a const void *", ApplyKernelPointerArguments},
      {"call-argument", "Functions that take other arguments in HIP", ApplyCallArguments},
      {"compiler-guard", "__CUDA_ARCH__, __CUDACC__ and __NVCC__ take HIP's meaning", ApplyCompilerGuards},
      {"warp-sync", "Warp-synchronous builtins with 32-bit masks", ApplyWarpSync},
      {"shuffle-width", "Shuffles without a width mix two 32-lane teams on 64 lanes", ApplyShuffleWidth},
      {"ballot-narrowed", "A 64-bit ballot kept in 32 bits", ApplyBallotNarrowed},
      {"warp-size", "warpSize is 64, or no constant", ApplyWarpSize},
      {"lane-arithmetic", "Constants that fix a warp's width at 32", ApplyLaneArithmetic},
      {"launch-bounds", "The second launch bound has another unit", ApplyLaunchBounds},
      {"missing-launch-bounds", "Kernels without launch bounds whose launches are all known", ApplyMissingLaunchBounds},
      {"inline-ptx", "PTX in asm()", ApplyInlinePtx},
      {"device-intrinsic", "Device functions that HIP lacks", ApplyDeviceIntrinsics},
      {"cub", "CUB becomes hipCUB; logical warps keep 32 threads", ApplyCub},
      {"thrust-policy", "thrust::cuda policies", ApplyThrustPolicy},
      {"cooperative-groups", "What HIP's cooperative groups lack", ApplyCooperativeGroups},
      {"tensor-core", "nvcuda::wmma, mma.sync and their kin", ApplyTensorCores},
      {"texture", "Textures on a chip without image instructions", ApplyTextures},
      {"shared-memory", "More shared memory than the LDS of a compute unit", ApplySharedMemory},
      {"libcudacxx", "cuda:: and cuda::std::", ApplyLibcudacxx},
      {"fp8", "8-bit floats differ by chip", ApplyFp8},
      {"warp-synchronous", "Reductions that rely on lock-step warps", ApplyWarpSynchronous},
      {"spin-lock", "Locks that need independent thread scheduling", ApplySpinLock},
      {"dynamic-parallelism", "Kernels launched from kernels", ApplyDynamicParallelism},
      {"atomic-overload", "Atomics and operators that HIP defines already", ApplyAtomicOverloads},
      {"vector-operator", "Operators on vector types that HIP has itself", ApplyVectorOperators},
      {"qualifier", "Qualifiers of CUDA's compiler", ApplyQualifiers},
      {"host-math", "Mathematical functions that only CUDA declares for the host", ApplyHostMath},
      {"transitive-include", "Headers of Thrust that CUDA includes by the way", ApplyTransitiveIncludes},
      {"dependent-template", "Dependent names that need the word template", ApplyDependentTemplate},
      {"half-conversion", "Casts between half and bfloat16 in templates", ApplyHalfConversion},
      {"half-precision", "Atomics and host operators of half and bfloat16", ApplyHalfPrecision},
      {"rename-api", "cudaX, cuX, cublasX ... become hipX, hipblasX ...", ApplyRenameApi},
  };
  return *rules;
}

}  // namespace portolan
