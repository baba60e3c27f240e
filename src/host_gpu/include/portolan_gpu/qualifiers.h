#pragma once

// CUDA's and HIP's words in front of declarations. __shared__ and <<<...>>> are rewritten by the translator
// (src/porting/verify), as no macro can do them, and so is __noinline__, which the standard library says too.

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __nv_pure__
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// Host passes of nvcc and hipcc define neither __CUDA_ARCH__ nor __HIP_DEVICE_COMPILE__; here there is one pass, the
// device's, as kernels are what is looked at.
#ifdef PORTOLAN_GPU_HIP
#define __HIPCC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define HIP_SYMBOL(x) x
#else
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 6
#define __CUDA_ARCH__ 800
#define CUDA_VERSION 12060
#define CUDART_VERSION 12060
#endif
