#pragma once

#include "cuda_fp16.h"
#include "portolan_gpu/small_floats.h"

PORTOLAN_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, Bfloat16Format)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#ifdef PORTOLAN_GPU_HIP
typedef __nv_bfloat16 __hip_bfloat16;
typedef __nv_bfloat162 __hip_bfloat162;
typedef __nv_bfloat16 hip_bfloat16;
#endif

inline float __bfloat162float(__nv_bfloat16 a) { return a; }
inline float __internal_bfloat162float(unsigned short a) { return portolan::gpu::Bfloat16Format::ToFloat(a); }
inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
inline __nv_bfloat162 __float2bfloat162_rn(float a) { return {__nv_bfloat16(a), __nv_bfloat16(a)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)}; }
inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {float(a.x), float(a.y)}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
inline float __low2float(__nv_bfloat162 a) { return a.x; }
inline float __high2float(__nv_bfloat162 a) { return a.y; }
inline __nv_bfloat16 __int2bfloat16_rn(int a) { return __nv_bfloat16(static_cast<float>(a)); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned a) { return __nv_bfloat16(static_cast<float>(a)); }
inline int __bfloat162int_rn(__nv_bfloat16 a) { return __float2int_rn(a); }
inline int __bfloat162int_rz(__nv_bfloat16 a) { return __float2int_rz(a); }
inline unsigned __bfloat162uint_rn(__nv_bfloat16 a) { return __float2uint_rn(a); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __nv_bfloat16(__nv_bfloat16_raw{a}); }
inline __nv_bfloat16 max(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmax(a, b); }
inline __nv_bfloat16 min(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmin(a, b); }
