__device__ uint2 tex2D(int rows, int columns, int x) { return make_uint2(rows, columns + x); }
__device__ unsigned f(int a) { return tex2D(a, 1, 2).x; }
