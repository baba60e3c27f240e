#include <cuda_fp16.h>  //-> #include <hip/hip_fp16.h>
#include <cuda_bf16.h>  //-> #include <hip/hip_bf16.h>
template <typename To, typename From>
__global__ void convert(To* to, const From* from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = static_cast<To>(from[i]);  //! warning half-conversion //-> if (i < n) to[i] = portolan::convert_to<To>(from[i]);
  float f = static_cast<float>(from[i]);
  to[0] = static_cast<To>(0);
  to[1] = static_cast<To>(f);
  to[2] = static_cast<To>(i * 2);
  auto p = static_cast<const From*>(from);
}
template <typename To>
To host(float v) {
  return static_cast<To>(v);
}
__global__ void empty_lists(half2* x, float2 f) {
  half2 sum = {};
  while (f.x > 0) {
    sum = {};  //! error half-conversion //-> sum = half2{};
    f = {};
  }
  x[0] = {};
}
