#ifdef __CUDACC__  //+ #ifndef USE_ROCM|#define USE_ROCM 1|#endif //! warning compiler-guard //-> #ifdef __HIPCC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif
#if defined(__NVCC__) && !defined(NO_GPU)  //! warning compiler-guard //-> #if defined(__HIPCC__) && !defined(NO_GPU)
#endif
__device__ int f() {
#ifdef __CUDA_ARCH__  //! error compiler-guard //-> #ifdef __HIP_DEVICE_COMPILE__
  return 1;
#endif
#if __CUDA_ARCH__ >= 600  //! warning compiler-guard //-> #if PORTOLAN_CUDA_ARCH >= 600
  return 2;
#else
  return 3;
#endif
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600  //! warning compiler-guard //-> #if defined(__HIP_DEVICE_COMPILE__) && PORTOLAN_CUDA_ARCH < 600
#endif
#if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)  //-> #if !(defined(__HIP_DEVICE_COMPILE__) && PORTOLAN_CUDA_ARCH < 800)
#endif
__device__ void g() {
#if __CUDA_ARCH__ >= 800  //! warning compiler-guard //-> #if PORTOLAN_CUDA_ARCH >= 800
  asm volatile("cp.async.commit_group;");
#else
  asm volatile("membar.gl;");  //! error inline-ptx //-> __threadfence();
#endif
#if __CUDA_ARCH__ >= 700
  asm volatile("nanosleep.u32 1;");
#elif defined(USE_ROCM)
  asm volatile("s_nop 0");
#endif
}
__device__ void starts_dependents() {
#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900))  //-> #if (defined(__HIP_DEVICE_COMPILE__) && (PORTOLAN_CUDA_ARCH >= 900))
  cudaTriggerProgrammaticLaunchCompletion();
#endif
#if __CUDA_ARCH__ >= 900  //! warning compiler-guard //-> #if PORTOLAN_CUDA_ARCH >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  prefetch();
#endif
#if __CUDA_ARCH__ >= 600  //! error compiler-guard //-> #if PORTOLAN_CUDA_ARCH >= 600
  store();
#endif
}
#if CUDA_VERSION >= 12080  //-> #if PORTOLAN_CUDA_VERSION >= 12080
#endif
#if defined(__CUDACC__) || defined(__HIPCC__)
#define GPU 1
#endif
#ifdef __HIP_PLATFORM_AMD__
#elif defined(__CUDACC__)
#endif
#ifdef __CUDACC_RTC__
#endif
#if MY__CUDA_ARCH__
#endif
#if 0
#ifdef __CUDACC__
#endif
#endif
// #ifdef __CUDACC__
int __CUDACC__count;
