__device__ int count(int p) {  //+ #ifndef USE_ROCM | #define USE_ROCM 1 | #endif
  unsigned int b = __ballot(p);  //! error ballot-narrowed //-> unsigned int b = portolan::ballot(p);
  unsigned long long wide = __ballot(p);  //-> unsigned long long wide = portolan::ballot(p);
  uint64_t sixty_four = __ballot(p);  //-> uint64_t sixty_four = portolan::ballot(p);
  auto deduced = __ballot(p);  //-> auto deduced = portolan::ballot(p);
  int late;
  late = __ballot(p);  //! error ballot-narrowed //-> late = portolan::ballot(p);
  int n = __popc(__ballot(p));  //! error ballot-narrowed //-> int n = __popc(portolan::ballot(p));
  n += __popcll(__ballot(p));  //-> n += __popcll(portolan::ballot(p));
  n += __popc(b & ((1 << lane) - 1));  //! error lane-mask; note lane-arithmetic
  n += __popc(other & ((1 << lane) - 1));  //! note lane-arithmetic
  if (__ballot(p) == 0) return 0;  //-> if (portolan::ballot(p) == 0) return 0;
  return n;
}
__device__ unsigned mask_of(int p) { return __ballot(p); }  //! error ballot-narrowed //-> __device__ unsigned mask_of(int p) { return portolan::ballot(p); }
__device__ unsigned long long wide_mask_of(int p) { return __ballot(p); }  //-> __device__ unsigned long long wide_mask_of(int p) { return portolan::ballot(p); }
#if defined(USE_ROCM)
__device__ uint64_t both_builds(
#else
__device__ uint32_t both_builds(
#endif
    int predicate) {
#if defined(USE_ROCM)
  return __ballot(predicate);
#else
  return __ballot_sync(~0u, predicate);
#endif
}
