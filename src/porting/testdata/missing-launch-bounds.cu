#define BLOCK 128
#ifndef TUNED
#define TUNED 256
#endif
__global__ void a(int* x) {}  //! note missing-launch-bounds //-> __global__ void __launch_bounds__(256) a(int* x) {}
template <typename T>
static __global__ void b(T* x) {}  //! note missing-launch-bounds //-> static __global__ void __launch_bounds__(512) b(T* x) {}
__global__ void c(int* x) {}  //! note missing-launch-bounds //-> __global__ void __launch_bounds__(256) c(int* x) {}
__global__ void set_by_the_build(int* x) {}
__global__ void of_any_size(int* x) {}
__global__ void handed_on(int* x) {}
__global__ void never_launched(int* x) {}
__global__ void full(int* x) {}
__global__ void __launch_bounds__(64) bounded(int* x) {}
__global__ void changed(int* x) {}
void f(int n, int* x) {
  a<<<n, BLOCK>>>(x);
  a<<<n, 64>>>(x);
  b<float><<<n, dim3(32, 16)>>>(x);
  dim3 block(16, 16);
  c<<<n, block>>>(x);
  set_by_the_build<<<n, TUNED>>>(x);
  of_any_size<<<n, 64>>>(x);
  of_any_size<<<n, n>>>(x);
  handed_on<<<n, 64>>>(x);
  run(handed_on, n, x);
  full<<<n, 1024>>>(x);
  bounded<<<n, 64>>>(x);
  dim3 other(64);
  other.x = n;
  changed<<<n, other>>>(x);
}
