__global__ void k(int* x) {
  __shared__ int per_lane[warpSize];  //! error warp-size //-> __shared__ int per_lane[portolan::kWarpSize];
  auto tile = partition<warpSize>(x);  //! error warp-size //-> auto tile = partition<portolan::kWarpSize>(x);
  if (x[0] < warpSize) return;  //! note warp-size //-> if (x[0] < portolan::kWarpSize) return;
}
