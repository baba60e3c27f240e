__global__ void k(const __grid_constant__ Params p) {}  //! error qualifier //-> __global__ void k(const Params p) {}
int grid_constant;
#define NOTHING
void r() { register int a = 0; }  //-> void r() { int a = 0; }
#define REGISTER register
void s(int register_count) { atexit(register); }
