#pragma once

// Device functions on numbers. The fast forms compute what the exact ones do.

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <cmath>
#include <cstdlib>

#include "portolan_gpu/core.h"
#include "portolan_gpu/vector_types.h"

#define PORTOLAN_MIN_MAX(T)                                           \
  PORTOLAN_INLINE constexpr T min(T a, T b) { return b < a ? b : a; } \
  PORTOLAN_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
PORTOLAN_MIN_MAX(int)
PORTOLAN_MIN_MAX(unsigned)
PORTOLAN_MIN_MAX(long)
PORTOLAN_MIN_MAX(unsigned long)
PORTOLAN_MIN_MAX(long long)
PORTOLAN_MIN_MAX(unsigned long long)
#undef PORTOLAN_MIN_MAX
#define PORTOLAN_MIN_MAX(A, B, T)                                                         \
  PORTOLAN_INLINE constexpr T min(A a, B b) {                                             \
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); \
  }                                                                                       \
  PORTOLAN_INLINE constexpr T max(A a, B b) {                                             \
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); \
  }
PORTOLAN_MIN_MAX(int, unsigned, unsigned)
PORTOLAN_MIN_MAX(unsigned, int, unsigned)
PORTOLAN_MIN_MAX(int, long, long)
PORTOLAN_MIN_MAX(long, int, long)
PORTOLAN_MIN_MAX(int, long long, long long)
PORTOLAN_MIN_MAX(long long, int, long long)
PORTOLAN_MIN_MAX(int, unsigned long, unsigned long)
PORTOLAN_MIN_MAX(unsigned long, int, unsigned long)
PORTOLAN_MIN_MAX(unsigned, unsigned long, unsigned long)
PORTOLAN_MIN_MAX(unsigned long, unsigned, unsigned long)
PORTOLAN_MIN_MAX(unsigned, long, long)
PORTOLAN_MIN_MAX(long, unsigned, long)
PORTOLAN_MIN_MAX(long, unsigned long, unsigned long)
PORTOLAN_MIN_MAX(unsigned long, long, unsigned long)
PORTOLAN_MIN_MAX(int, unsigned long long, unsigned long long)
PORTOLAN_MIN_MAX(unsigned long long, int, unsigned long long)
#undef PORTOLAN_MIN_MAX
#define PORTOLAN_MIN_MAX(A, B, T, F)                                  \
  PORTOLAN_INLINE T min(A a, B b) { return __builtin_fmin##F(a, b); } \
  PORTOLAN_INLINE T max(A a, B b) { return __builtin_fmax##F(a, b); }
PORTOLAN_MIN_MAX(float, float, float, f)
PORTOLAN_MIN_MAX(double, double, double, )
PORTOLAN_MIN_MAX(float, double, double, )
PORTOLAN_MIN_MAX(double, float, double, )
PORTOLAN_MIN_MAX(int, float, float, f)
PORTOLAN_MIN_MAX(float, int, float, f)
PORTOLAN_MIN_MAX(int, double, double, )
PORTOLAN_MIN_MAX(double, int, double, )
PORTOLAN_MIN_MAX(unsigned, float, float, f)
PORTOLAN_MIN_MAX(float, unsigned, float, f)
#undef PORTOLAN_MIN_MAX
PORTOLAN_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
PORTOLAN_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
PORTOLAN_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
PORTOLAN_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
PORTOLAN_INLINE long long llmin(long long a, long long b) { return min(a, b); }
PORTOLAN_INLINE long long llmax(long long a, long long b) { return max(a, b); }

#define PORTOLAN_FAST(NAME, F) \
  PORTOLAN_INLINE float NAME(float x) { return F(x); }
PORTOLAN_FAST(__expf, ::expf)
PORTOLAN_FAST(__logf, ::logf)
PORTOLAN_FAST(__log2f, ::log2f)
PORTOLAN_FAST(__log10f, ::log10f)
PORTOLAN_FAST(__sinf, ::sinf)
PORTOLAN_FAST(__cosf, ::cosf)
PORTOLAN_FAST(__tanf, ::tanf)
PORTOLAN_FAST(__tanhf, ::tanhf)
PORTOLAN_FAST(__saturatef, [](float v) { return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f; })
PORTOLAN_FAST(rsqrtf, 1.0f / ::sqrtf)
PORTOLAN_FAST(rcbrtf, 1.0f / ::cbrtf)
PORTOLAN_FAST(__frsqrt_rn, 1.0f / ::sqrtf)
PORTOLAN_FAST(__fsqrt_rn, ::sqrtf)
PORTOLAN_FAST(__fsqrt_rz, ::sqrtf)
PORTOLAN_FAST(__frcp_rn, 1.0f /)
PORTOLAN_FAST(__frcp_rz, 1.0f /)
PORTOLAN_FAST(normcdff, [](float v) { return 0.5f * ::erfcf(-0.70710678118654752f * v); })
#undef PORTOLAN_FAST
PORTOLAN_INLINE float __exp10f(float x) { return ::powf(10.0f, x); }
PORTOLAN_INLINE float __powf(float x, float y) { return ::powf(x, y); }
PORTOLAN_INLINE float __fdividef(float x, float y) { return x / y; }
PORTOLAN_INLINE float fdividef(float x, float y) { return x / y; }
PORTOLAN_INLINE void __sincosf(float x, float* s, float* c) { *s = ::sinf(x), *c = ::cosf(x); }
PORTOLAN_INLINE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
PORTOLAN_INLINE float rsqrt(float x) { return 1.0f / ::sqrtf(x); }
PORTOLAN_INLINE double rcbrt(double x) { return 1.0 / ::cbrt(x); }
PORTOLAN_INLINE double normcdf(double x) { return 0.5 * ::erfc(-x * 0.70710678118654752440); }
PORTOLAN_INLINE double sinpi(double x) { return ::sin(M_PI * ::fmod(x, 2.0)); }
PORTOLAN_INLINE double cospi(double x) { return ::cos(M_PI * ::fmod(x, 2.0)); }
PORTOLAN_INLINE float sinpif(float x) { return static_cast<float>(sinpi(x)); }
PORTOLAN_INLINE float cospif(float x) { return static_cast<float>(cospi(x)); }
PORTOLAN_INLINE void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
PORTOLAN_INLINE void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
PORTOLAN_INLINE float erfcxf(float x) { return static_cast<float>(::exp(double(x) * x) * ::erfc(double(x))); }
PORTOLAN_INLINE float norm3df(float a, float b, float c) { return ::sqrtf(a * a + b * b + c * c); }
PORTOLAN_INLINE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
PORTOLAN_INLINE float norm4df(float a, float b, float c, float d) { return ::sqrtf(a * a + b * b + c * c + d * d); }
PORTOLAN_INLINE double norm3d(double a, double b, double c) { return ::sqrt(a * a + b * b + c * c); }
PORTOLAN_INLINE float rhypotf(float a, float b) { return 1.0f / ::hypotf(a, b); }

#define PORTOLAN_ROUNDED(T, P, S)                              \
  PORTOLAN_INLINE T __##P##add_##S(T a, T b) { return a + b; } \
  PORTOLAN_INLINE T __##P##sub_##S(T a, T b) { return a - b; } \
  PORTOLAN_INLINE T __##P##mul_##S(T a, T b) { return a * b; } \
  PORTOLAN_INLINE T __##P##div_##S(T a, T b) { return a / b; }
PORTOLAN_ROUNDED(float, f, rn)
PORTOLAN_ROUNDED(float, f, rz)
PORTOLAN_ROUNDED(float, f, ru)
PORTOLAN_ROUNDED(float, f, rd)
PORTOLAN_ROUNDED(double, d, rn)
PORTOLAN_ROUNDED(double, d, rz)
PORTOLAN_ROUNDED(double, d, ru)
PORTOLAN_ROUNDED(double, d, rd)
#undef PORTOLAN_ROUNDED
PORTOLAN_INLINE float __fmaf_rn(float a, float b, float c) { return ::fmaf(a, b, c); }
PORTOLAN_INLINE float __fmaf_rz(float a, float b, float c) { return ::fmaf(a, b, c); }
PORTOLAN_INLINE float __fmaf_ieee_rn(float a, float b, float c) { return ::fmaf(a, b, c); }
PORTOLAN_INLINE double __fma_rn(double a, double b, double c) { return ::fma(a, b, c); }
PORTOLAN_INLINE double __drcp_rn(double x) { return 1.0 / x; }
PORTOLAN_INLINE double __dsqrt_rn(double x) { return ::sqrt(x); }

PORTOLAN_INLINE int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
PORTOLAN_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
PORTOLAN_INLINE int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
PORTOLAN_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
PORTOLAN_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
PORTOLAN_INLINE long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
PORTOLAN_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
PORTOLAN_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
PORTOLAN_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
PORTOLAN_INLINE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
#ifdef PORTOLAN_GPU_HIP
PORTOLAN_INLINE int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
PORTOLAN_INLINE int __ffs(int x) { return __builtin_ffs(x); }
PORTOLAN_INLINE int __ffsll(unsigned long long x) { return __builtin_ffsll(static_cast<long long>(x)); }
PORTOLAN_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
PORTOLAN_INLINE int __ffsll(unsigned long x) { return __builtin_ffsll(static_cast<long long>(x)); }
PORTOLAN_INLINE int __ffs(unsigned long x) { return __builtin_ffsll(static_cast<long long>(x)); }
PORTOLAN_INLINE int __ffs(unsigned long long x) { return __builtin_ffsll(static_cast<long long>(x)); }
#else
PORTOLAN_INLINE int __ffs(int x) { return __builtin_ffs(x); }
PORTOLAN_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
#endif
PORTOLAN_INLINE unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= ((x >> i) & 1u) << (31 - i);
  return r;
}
PORTOLAN_INLINE unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) |
         __brev(static_cast<unsigned>(x >> 32));
}
PORTOLAN_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = (static_cast<unsigned long long>(b) << 32) | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = (selector >> (4 * i)) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
PORTOLAN_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((((static_cast<unsigned long long>(high) << 32) | low) << (shift & 31)) >> 32);
}
PORTOLAN_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}
PORTOLAN_INLINE unsigned __sad(int a, int b, unsigned c) { return static_cast<unsigned>(a > b ? a - b : b - a) + c; }
PORTOLAN_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
PORTOLAN_INLINE int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
PORTOLAN_INLINE int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
PORTOLAN_INLINE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  return c;
}
PORTOLAN_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += ((a >> (8 * i)) & 0xff) * ((b >> (8 * i)) & 0xff);
  return c;
}

#define PORTOLAN_REINTERPRET(NAME, FROM, TO)          \
  PORTOLAN_INLINE TO NAME(FROM value) {               \
    TO result;                                        \
    __builtin_memcpy(&result, &value, sizeof result); \
    return result;                                    \
  }
PORTOLAN_REINTERPRET(__float_as_int, float, int)
PORTOLAN_REINTERPRET(__float_as_uint, float, unsigned)
PORTOLAN_REINTERPRET(__int_as_float, int, float)
PORTOLAN_REINTERPRET(__uint_as_float, unsigned, float)
PORTOLAN_REINTERPRET(__double_as_longlong, double, long long)
PORTOLAN_REINTERPRET(__longlong_as_double, long long, double)
#undef PORTOLAN_REINTERPRET
PORTOLAN_INLINE int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
PORTOLAN_INLINE int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
PORTOLAN_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((static_cast<long long>(high) << 32) | static_cast<unsigned>(low));
}

// Conversions saturate, as the hardware's do.
namespace portolan::gpu {
template <typename To, typename From>
PORTOLAN_INLINE To Saturate(From x) {
  constexpr From kLow = static_cast<From>(static_cast<To>(To(-1) < To(0) ? To(1) << (sizeof(To) * 8 - 1) : To(0)));
  constexpr From kHigh = static_cast<From>(2.0) * static_cast<From>(To(1) << (sizeof(To) * 8 - 2)) *
                         static_cast<From>(To(-1) < To(0) ? 1 : 2);
  if (!(x == x)) return To(0);
  if (x <= kLow) return static_cast<To>(To(-1) < To(0) ? To(1) << (sizeof(To) * 8 - 1) : To(0));
  if (x >= kHigh) return static_cast<To>(~(To(-1) < To(0) ? To(1) << (sizeof(To) * 8 - 1) : To(0)));
  return static_cast<To>(x);
}
}  // namespace portolan::gpu
#define PORTOLAN_TO_INTEGER(FROM, F, NAME, TO)                                                             \
  PORTOLAN_INLINE TO __##FROM##2##NAME##_rn(FROM x) { return portolan::gpu::Saturate<TO>(::rint##F(x)); }  \
  PORTOLAN_INLINE TO __##FROM##2##NAME##_rz(FROM x) { return portolan::gpu::Saturate<TO>(::trunc##F(x)); } \
  PORTOLAN_INLINE TO __##FROM##2##NAME##_ru(FROM x) { return portolan::gpu::Saturate<TO>(::ceil##F(x)); }  \
  PORTOLAN_INLINE TO __##FROM##2##NAME##_rd(FROM x) { return portolan::gpu::Saturate<TO>(::floor##F(x)); }
PORTOLAN_TO_INTEGER(float, f, int, int)
PORTOLAN_TO_INTEGER(float, f, uint, unsigned)
PORTOLAN_TO_INTEGER(float, f, ll, long long)
PORTOLAN_TO_INTEGER(float, f, ull, unsigned long long)
PORTOLAN_TO_INTEGER(double, , int, int)
PORTOLAN_TO_INTEGER(double, , uint, unsigned)
PORTOLAN_TO_INTEGER(double, , ll, long long)
PORTOLAN_TO_INTEGER(double, , ull, unsigned long long)
#undef PORTOLAN_TO_INTEGER
#define PORTOLAN_TO_FLOAT(NAME, FROM, TO, R) \
  PORTOLAN_INLINE TO NAME##_##R(FROM x) { return static_cast<TO>(x); }
#define PORTOLAN_ALL_TO_FLOAT(NAME, FROM, TO) \
  PORTOLAN_TO_FLOAT(NAME, FROM, TO, rn)       \
  PORTOLAN_TO_FLOAT(NAME, FROM, TO, rz)       \
  PORTOLAN_TO_FLOAT(NAME, FROM, TO, ru)       \
  PORTOLAN_TO_FLOAT(NAME, FROM, TO, rd)
PORTOLAN_ALL_TO_FLOAT(__int2float, int, float)
PORTOLAN_ALL_TO_FLOAT(__uint2float, unsigned, float)
PORTOLAN_ALL_TO_FLOAT(__ll2float, long long, float)
PORTOLAN_ALL_TO_FLOAT(__ull2float, unsigned long long, float)
PORTOLAN_ALL_TO_FLOAT(__ll2double, long long, double)
PORTOLAN_ALL_TO_FLOAT(__ull2double, unsigned long long, double)
PORTOLAN_ALL_TO_FLOAT(__double2float, double, float)
#undef PORTOLAN_ALL_TO_FLOAT
#undef PORTOLAN_TO_FLOAT
PORTOLAN_INLINE double __int2double_rn(int x) { return x; }
PORTOLAN_INLINE double __uint2double_rn(unsigned x) { return x; }

#define PORTOLAN_CACHE_HINT(NAME)            \
  template <typename T>                      \
  PORTOLAN_INLINE T NAME(const T* address) { \
    return *address;                         \
  }
PORTOLAN_CACHE_HINT(__ldg)
PORTOLAN_CACHE_HINT(__ldcg)
PORTOLAN_CACHE_HINT(__ldca)
PORTOLAN_CACHE_HINT(__ldcs)
PORTOLAN_CACHE_HINT(__ldlu)
PORTOLAN_CACHE_HINT(__ldcv)
#undef PORTOLAN_CACHE_HINT
#define PORTOLAN_CACHE_HINT(NAME)                  \
  template <typename T>                            \
  PORTOLAN_INLINE void NAME(T* address, T value) { \
    *address = value;                              \
  }
PORTOLAN_CACHE_HINT(__stcg)
PORTOLAN_CACHE_HINT(__stcs)
PORTOLAN_CACHE_HINT(__stwb)
PORTOLAN_CACHE_HINT(__stwt)
#undef PORTOLAN_CACHE_HINT

PORTOLAN_INLINE void __trap() { abort(); }
PORTOLAN_INLINE void __brkpt() {}
PORTOLAN_INLINE long long clock64() { return static_cast<long long>(portolan::gpu::VirtualClock()); }
PORTOLAN_INLINE long long wall_clock64() { return clock64(); }
PORTOLAN_INLINE unsigned long long __globaltimer() { return portolan::gpu::VirtualClock(); }
PORTOLAN_INLINE bool __isGlobal(const void* p) { return portolan::gpu::AllocationRest(p) != 0; }
