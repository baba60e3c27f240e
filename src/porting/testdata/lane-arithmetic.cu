#define WARP_SIZE 32  //! note lane-arithmetic
constexpr int kLanesOfAWarp = 32;  //! note lane-arithmetic
const int block = 32;
#define TILE 32
#define WARPS_PER_BLOCK 8
#define FULL_WAVE 64
int warps = threads / 32;
#ifdef __HIPCC__
constexpr int kEmulatedWarp = 32;
#endif
__global__ void k(int* x, int lane) {
  const int warp = threadIdx.x >> 5;        //! note lane-arithmetic
  const int self = threadIdx.x & 0x1f;      //! note lane-arithmetic
  const int other = threadIdx.x / 32 + threadIdx.x % 64;  //! note lane-arithmetic
  x[0] = 1u << lane;                        //! note lane-arithmetic
  x[1] = 1ull << lane;
  x[2] = blockIdx.x / 32 + threadIdx.y % 32 + (threadIdx.x & 3);
}
int host(int tid) { return tid / 32; }
