__global__ void too_much() {
  __shared__ float a[128][64];
  __shared__ float b[128][64];
  __shared__ float c[1];  //! error shared-memory
}
