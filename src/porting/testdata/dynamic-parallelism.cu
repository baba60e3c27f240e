__global__ void child() {}  //! note missing-launch-bounds //-> __global__ void __launch_bounds__(256) child() {}
__global__ void parent() {  //! note missing-launch-bounds //-> __global__ void __launch_bounds__(256) parent() {
  child<<<1, 1>>>();  //! error dynamic-parallelism
}
void host() {
  parent<<<1, 1>>>();
  int x = 1 << 3;
}
