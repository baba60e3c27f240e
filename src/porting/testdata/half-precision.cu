#include <cuda_fp16.h>  //-> #include <hip/hip_fp16.h>
__global__ void k(__half2* x, float* y) {
  atomicAdd(x, *x);
  atomicAdd(y, 1.0f);
}
