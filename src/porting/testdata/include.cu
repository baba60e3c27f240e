#include <cuda_runtime.h>               //-> #include <hip/hip_runtime.h>
#include <cuda_runtime_api.h>           //-> #include <hip/hip_runtime_api.h>
#include "cuda_fp16.h"                  //-> #include "hip/hip_fp16.h"
#  include <cub/block/block_scan.cuh>   //-> #  include <hipcub/hipcub.hpp>
#include <cublas_v2.h>                  //+ #define HIPBLAS_V2   //-> #include <hipblas/hipblas.h>
#include <curand_kernel.h>              //-> #include <hiprand/hiprand_kernel.h>
#include <nccl.h>                       //-> #include <rccl/rccl.h>
#include <thrust/system/cuda/execution_policy.h>  //-> #include <thrust/system/hip/execution_policy.h>
#include <cooperative_groups.h>         //-> #include <hip/hip_cooperative_groups.h>
#include <cooperative_groups/reduce.h>  //! error cooperative-groups //-> #include <hip/hip_cooperative_groups.h>
#include <vector>
#include <thrust/device_vector.h>
#include "my_cuda_runtime.h"
#include "cuda/device.cuh"
#include <hip/hip_runtime.h>
const char* text = "#include <cuda_runtime.h>";
// #include <cuda_runtime.h>
/* #include <cuda_runtime.h>
#include <cuda_runtime.h> */
const char* raw = R"(
#include <cuda_runtime.h>
)";
#if 0
#include <cuda_runtime.h>
#endif
#ifdef __HIPCC__
#include <hip/hip_fp16.h>
#else
#include <cuda_fp16.h>
#endif
