inline __host__ __device__ float2 operator*(float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); }  //+ #ifndef __HIPCC__ //! error vector-operator
int one;  //+ #endif
inline __host__ __device__ void operator+=(float2 &a, float2 b) { a.x += b.x; a.y += b.y; }  //+ #ifndef __HIPCC__ //! error vector-operator
int two;  //+ #endif
inline __host__ __device__ float2 operator*(float2 a, float2 c) { return make_float2(a.x * c.x - a.y * c.y, a.x * c.y + a.y * c.x); }  //! error vector-operator
inline __host__ __device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline __host__ __device__ float2 operator*(float2 a, float b) { return make_float2(a.x * b, a.y * b); }
inline __host__ __device__ void operator*=(float2 &a, float b) { a.x *= b; }
inline Matrix4 operator*(Matrix4 a, Matrix4 b) { return a; }
