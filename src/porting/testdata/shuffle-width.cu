__device__ float team(float v, int lane, int d) {
  v += __shfl_xor(v, 16);  //-> v += portolan::shfl_xor(v, 16);
  v += __shfl_down(v, d);  //-> v += portolan::shfl_down(v, d);
  float u = __shfl_up(v, d);  //-> float u = portolan::shfl_up(v, d);
  if (lane >= d) v += u;
  v += __shfl(v, 31, 32);
  v += __shfl(v, lane, WIDTH);
  v = __shfl(v, 31);  //! error shuffle-width //-> v = portolan::shfl(v, 31);
  v = __shfl(lane / 128, 0);  //! warning shuffle-width //-> v = portolan::shfl(lane / 128, 0);
  return v;
}
__device__ float told_apart(float v, const float* x, float* y, int lane, int row) {
  v = __shfl(v, 0);  //! warning shuffle-width //-> v = portolan::shfl(v, 0);
  float sum = 0;
  for (int j = threadIdx.x % 32; j < 256; j += 32) sum += x[j];  //! note lane-arithmetic
  sum = __shfl(sum, 0);  //! warning shuffle-width //-> sum = portolan::shfl(sum, 0);
  float own = x[row];
  own = __shfl(own, 0);  //! warning shuffle-width //-> own = portolan::shfl(own, 0);
  int at = threadIdx.x / 32;  //! note lane-arithmetic
  float mine = x[at];
  float twice[2] = {mine, 2 * mine};
  y[0] = __shfl(twice[0], 0);  //! error shuffle-width //-> y[0] = portolan::shfl(twice[0], 0);
  int slot = 0;
  if (lane == 0) slot = atomicAdd(&count, 1);
  slot = __shfl(slot, 0);  //! error shuffle-width //-> slot = portolan::shfl(slot, 0);
  y[slot] = v.mine == 3 ? __shfl(row, 0) : own;  //! warning shuffle-width //-> y[slot] = v.mine == 3 ? portolan::shfl(row, 0) : own;
  return v;
}
__device__ float unguarded(float v) {
  v += 1;
  v += 2;
  v += 3;
  v += 4;
  v += 5;
  v += 6;
  v += 7;
  v += 8;
  v += 9;
  v += 10;
  v += __shfl_up(v, 1);  //! warning shuffle-width //-> v += portolan::shfl_up(v, 1);
  v += 1;
  v += 2;
  v += 3;
  v += 4;
  v += 5;
  v += 6;
  v += 7;
  v += 8;
  v += 9;
  v += 10;
  v += 11;
  v += 12;
  v += 13;
  v += 14;
  return v;
}
__global__ void half_a_wave(float* x) {  //! note missing-launch-bounds //-> __global__ void __launch_bounds__(256) half_a_wave(float* x) {
  x[0] = __shfl(x[threadIdx.x], 31);  //-> x[0] = portolan::shfl(x[threadIdx.x], 31);
}
void launch(float* x) { half_a_wave<<<100, 32>>>(x); }
__global__ void first_team(float* x, int warp_idx) {
  if (warp_idx == 0) {
    for (int i = 0; i < 4; ++i) {
      x[i] = __shfl(x[threadIdx.x], 0);  //-> x[i] = portolan::shfl(x[threadIdx.x], 0);
    }
  }
  if (threadIdx.x < 32) { x[0] = __shfl(x[1], 3); }  //-> if (threadIdx.x < 32) { x[0] = portolan::shfl(x[1], 3); }
  if (warp_idx == 0 || x[0] > 0) { x[0] = __shfl(x[1], 3); }  //! error shuffle-width //-> if (warp_idx == 0 || x[0] > 0) { x[0] = portolan::shfl(x[1], 3); }
}
struct Reduction {
  OTHERS_DEVICE void operator()(float v) {
    if (warp_idx == 0) {
      v = __shfl(v, 0);  //-> v = portolan::shfl(v, 0);
    }
    v = __shfl(v, 0);  //! error shuffle-width //-> v = portolan::shfl(v, 0);
  }
};
