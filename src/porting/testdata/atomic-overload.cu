__device__ double atomicAdd(double* address, double value) {  //+ #ifndef __HIPCC__ //! error atomic-overload
  return *address + value;
}
int next;  //+ #endif
__device__ float atomicMin(int* address, float value) {
  return value;
}
__device__ double my_atomicAdd(double* address, double value) {
  return *address;
}
__device__ void use(double* x) { atomicAdd(x, 1.0); }
