__global__ void k(const __grid_constant__ Params p) {}  //! error qualifier //-> __global__ void k(const Params p) {}
int grid_constant;
#define NOTHING
