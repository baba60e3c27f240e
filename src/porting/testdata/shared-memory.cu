#define TILE 128
__global__ void fits() {
  __shared__ float a[TILE][TILE];
  __shared__ float b[TILE][TILE];
}
__global__ void too_much() {
  __shared__ float a[TILE][TILE];
  __shared__ double b[TILE][TILE];  //! error shared-memory
}
__global__ void dynamic() {
  extern __shared__ float x[];
  __shared__ float unknown[N];
}
void launch() {
  cudaFuncSetAttribute((void*)f, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);  //-> hipFuncSetAttribute((void*)f, hipFuncAttributeMaxDynamicSharedMemorySize, 98304);
  cudaFuncSetAttribute((void*)f, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);  //! error shared-memory //-> hipFuncSetAttribute((void*)f, hipFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
  cudaFuncSetAttribute((void*)f, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);  //! note shared-memory //-> hipFuncSetAttribute((void*)f, hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
