__global__ void __launch_bounds__(256) a() {}
__global__ void __launch_bounds__(256, 1) b() {}
__global__ void __launch_bounds__(512, 2) c() {}  //! warning launch-bounds //-> __global__ void __launch_bounds__(512, PORTOLAN_WAVES(512, 2)) c() {}
__global__ void __launch_bounds__(256, 4) d() {}
__global__ void __launch_bounds__(THREADS, BLOCKS) e() {}  //! warning launch-bounds //-> __global__ void __launch_bounds__(THREADS, PORTOLAN_WAVES(THREADS, BLOCKS)) e() {}
__global__ void __launch_bounds__(1024, 1, 2) f() {}  //! warning launch-bounds //-> __global__ void __launch_bounds__(1024, PORTOLAN_WAVES(1024, 1)) f() {}
__global__ void __launch_bounds__(64, 1) g() {}
#ifdef __HIPCC__
__global__ void __launch_bounds__(512, 2) h() {}
#endif
// __launch_bounds__(512, 2)
