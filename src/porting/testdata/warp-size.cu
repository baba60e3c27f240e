__global__ void k(int* x) {
  __shared__ int per_lane[warpSize];  //! warning warp-size //-> __shared__ int per_lane[portolan::kWarpSize];
  int lane = threadIdx.x % warpSize;  //! note warp-size //-> int lane = threadIdx.x % portolan::kWarpSize;
  x[warpSize] = f(warpSize);  //! note warp-size //-> x[portolan::kWarpSize] = f(portolan::kWarpSize);
}
int host() {
  return properties.warpSize;  //! note warp-size
}
int warpSizeOf(int a);
__device__ int head(int v, int width = warpSize) { return v; }  //! note warp-size //-> __device__ int head(int v, int width = portolan::kWarpSize) { return v; }
int of_the_host(int width = warpSize) { return width; }
#define DEVICE __forceinline__ __device__
#if OTHER
#define DEVICE inline
#endif
template <typename T>
DEVICE T by_macro(T v, int width = warpSize) { return v; }  //! note warp-size //-> DEVICE T by_macro(T v, int width = portolan::kWarpSize) { return v; }
OTHERS_HOST_DEVICE int by_name() { return warpSize; }  //! note warp-size //-> OTHERS_HOST_DEVICE int by_name() { return portolan::kWarpSize; }
int on_the_host(int a) { return f(ON_DEVICE, a) == g(ON_DEVICE) && h(warpSize) ? 1 : 2; }
