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
