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
