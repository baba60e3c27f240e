__global__ void child() {}
__global__ void parent() {
  child<<<1, 1>>>();  //! error dynamic-parallelism
}
void host() {
  parent<<<1, 1>>>();
  int x = 1 << 3;
}
