__device__ float sum(float v) {
  v += __shfl_xor_sync(0xffffffff, v, 16);  //! error warp-sync //-> v += portolan::shfl_xor_sync(0xffffffff, v, 16);
  v += __shfl_down_sync(FULL, v, 8, 32);  //! error warp-sync //-> v += portolan::shfl_down_sync(FULL, v, 8, 32);
  __syncwarp();  //! error warp-sync //-> portolan::syncwarp();
  unsigned long long wide = __shfl_xor_sync(0xffffffffffffffffull, v, 16);  //-> unsigned long long wide = portolan::shfl_xor_sync(0xffffffffffffffffull, v, 16);
  if (__any_sync(mask, v > 0)) return 1;  //! error warp-sync //-> if (portolan::any_sync(mask, v > 0)) return 1;
  unsigned active = __activemask();  //! warning warp-sync //-> unsigned active = portolan::activemask();
  int n = __reduce_add_sync(mask, 1);  //! error warp-sync //-> int n = portolan::reduce_add_sync(mask, 1);
  v += __shfl_xor(v, 1);  //-> v += portolan::shfl_xor(v, 1);
  v += __shfl_xor(v, 1, 16);
  v += tile.shfl_xor(v, 1);
  v += my__shfl_xor_sync(mask, v, 1);
  uint64_t wide_mask = 3;
  v += __shfl_xor_sync(wide_mask, v, 1);  //-> v += portolan::shfl_xor_sync(wide_mask, v, 1);
  v += __shfl_xor_sync(UINT64_MAX, v, 1);  //-> v += portolan::shfl_xor_sync(UINT64_MAX, v, 1);
  __syncthreads();
  __threadfence_block();
  const char* text = "__syncwarp()";
  return v;
}
#define SHUFFLE(v) __shfl_xor_sync(~0u, v, 1)  //! error warp-sync //-> #define SHUFFLE(v) portolan::shfl_xor_sync(~0u, v, 1)
#ifdef __HIP_PLATFORM_AMD__
__device__ float g(float v) { return __shfl_xor(v, 32); }
#else
__device__ float g(float v) { return __shfl_xor_sync(~0u, v, 16); }
#endif
