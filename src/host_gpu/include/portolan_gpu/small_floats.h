#pragma once

// 16-bit floats by way of float: every operation rounds once, to nearest even. What half and bfloat16 have in common.

#include <string.h>

#include "portolan_gpu/core.h"

namespace portolan::gpu {

PORTOLAN_INLINE unsigned FloatBits(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
PORTOLAN_INLINE float BitsFloat(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// IEEE 754 binary16.
struct HalfFormat {
  static float ToFloat(unsigned short h) {
    const unsigned sign = static_cast<unsigned>(h & 0x8000) << 16;
    const unsigned magnitude = h & 0x7fff;
    if (magnitude >= 0x7c00) return BitsFloat(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400) return BitsFloat(sign | ((magnitude << 13) + 0x38000000));
    return BitsFloat(sign | FloatBits(static_cast<float>(magnitude) * 0x1p-24f));
  }
  static unsigned short FromFloat(float x) {
    const unsigned bits = FloatBits(x);
    const unsigned sign = (bits >> 16) & 0x8000;
    const unsigned magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<unsigned short>(sign | 0x7fff);
    if (magnitude >= 0x477ff000) return static_cast<unsigned short>(sign | 0x7c00);
    if (magnitude < 0x38800000) {
      // Subnormal: adding 0.5 aligns its last bit with the last one of a float.
      const unsigned aligned = FloatBits(BitsFloat(magnitude) + 0.5f);
      return static_cast<unsigned short>(sign | (aligned - 0x3f000000));
    }
    const unsigned rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return static_cast<unsigned short>(sign | ((rounded - 0x38000000) >> 13));
  }
};

// The upper half of a float.
struct Bfloat16Format {
  static float ToFloat(unsigned short b) { return BitsFloat(static_cast<unsigned>(b) << 16); }
  static unsigned short FromFloat(float x) {
    const unsigned bits = FloatBits(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

}  // namespace portolan::gpu

// The type TYPE and its pair TYPE2, in format FORMAT.
#define PORTOLAN_SMALL_FLOAT(TYPE, TYPE2, FORMAT)                                                            \
  struct TYPE##_raw {                                                                                        \
    unsigned short x;                                                                                        \
  };                                                                                                         \
  struct alignas(2) TYPE {                                                                                   \
    unsigned short bits;                                                                                     \
    TYPE() = default;                                                                                        \
    TYPE(TYPE##_raw raw) : bits(raw.x) {}                                                                    \
    TYPE(float x) : bits(portolan::gpu::FORMAT::FromFloat(x)) {}                                             \
    TYPE(double x) : TYPE(static_cast<float>(x)) {}                                                          \
    TYPE(int x) : TYPE(static_cast<float>(x)) {}                                                             \
    TYPE(unsigned x) : TYPE(static_cast<float>(x)) {}                                                        \
    TYPE(long x) : TYPE(static_cast<float>(x)) {}                                                            \
    TYPE(unsigned long x) : TYPE(static_cast<float>(x)) {}                                                   \
    TYPE(long long x) : TYPE(static_cast<float>(x)) {}                                                       \
    TYPE(short x) : TYPE(static_cast<float>(x)) {}                                                           \
    TYPE(unsigned short x) : TYPE(static_cast<float>(x)) {}                                                  \
    operator float() const { return portolan::gpu::FORMAT::ToFloat(bits); }                                  \
    operator TYPE##_raw() const { return {bits}; }                                                           \
    template <typename T>                                                                                    \
    explicit operator T() const {                                                                            \
      return static_cast<T>(static_cast<float>(*this));                                                      \
    }                                                                                                        \
    TYPE& operator+=(TYPE b) { return *this = TYPE(float(*this) + float(b)); }                               \
    TYPE& operator-=(TYPE b) { return *this = TYPE(float(*this) - float(b)); }                               \
    TYPE& operator*=(TYPE b) { return *this = TYPE(float(*this) * float(b)); }                               \
    TYPE& operator/=(TYPE b) { return *this = TYPE(float(*this) / float(b)); }                               \
    TYPE operator-() const { return TYPE(-float(*this)); }                                                   \
    TYPE operator+() const { return *this; }                                                                 \
  };                                                                                                         \
  inline TYPE operator+(TYPE a, TYPE b) { return TYPE(float(a) + float(b)); }                                \
  inline TYPE operator-(TYPE a, TYPE b) { return TYPE(float(a) - float(b)); }                                \
  inline TYPE operator*(TYPE a, TYPE b) { return TYPE(float(a) * float(b)); }                                \
  inline TYPE operator/(TYPE a, TYPE b) { return TYPE(float(a) / float(b)); }                                \
  inline bool operator==(TYPE a, TYPE b) { return float(a) == float(b); }                                    \
  inline bool operator!=(TYPE a, TYPE b) { return float(a) != float(b); }                                    \
  inline bool operator<(TYPE a, TYPE b) { return float(a) < float(b); }                                      \
  inline bool operator>(TYPE a, TYPE b) { return float(a) > float(b); }                                      \
  inline bool operator<=(TYPE a, TYPE b) { return float(a) <= float(b); }                                    \
  inline bool operator>=(TYPE a, TYPE b) { return float(a) >= float(b); }                                    \
  struct alignas(4) TYPE2 {                                                                                  \
    TYPE x, y;                                                                                               \
    TYPE2() = default;                                                                                       \
    TYPE2(TYPE a, TYPE b) : x(a), y(b) {}                                                                    \
    TYPE2& operator+=(TYPE2 b) { return *this = TYPE2(x + b.x, y + b.y); }                                   \
    TYPE2& operator-=(TYPE2 b) { return *this = TYPE2(x - b.x, y - b.y); }                                   \
    TYPE2& operator*=(TYPE2 b) { return *this = TYPE2(x * b.x, y * b.y); }                                   \
  };                                                                                                         \
  inline TYPE2 operator+(TYPE2 a, TYPE2 b) { return {a.x + b.x, a.y + b.y}; }                                \
  inline TYPE2 operator-(TYPE2 a, TYPE2 b) { return {a.x - b.x, a.y - b.y}; }                                \
  inline TYPE2 operator*(TYPE2 a, TYPE2 b) { return {a.x * b.x, a.y * b.y}; }                                \
  inline TYPE2 operator/(TYPE2 a, TYPE2 b) { return {a.x / b.x, a.y / b.y}; }                                \
  inline TYPE2 operator-(TYPE2 a) { return {-a.x, -a.y}; }                                                   \
  inline TYPE __hadd(TYPE a, TYPE b) { return a + b; }                                                       \
  inline TYPE __hsub(TYPE a, TYPE b) { return a - b; }                                                       \
  inline TYPE __hmul(TYPE a, TYPE b) { return a * b; }                                                       \
  inline TYPE __hdiv(TYPE a, TYPE b) { return a / b; }                                                       \
  inline TYPE __hadd_rn(TYPE a, TYPE b) { return a + b; }                                                    \
  inline TYPE __hmul_rn(TYPE a, TYPE b) { return a * b; }                                                    \
  inline TYPE __hneg(TYPE a) { return -a; }                                                                  \
  inline TYPE __habs(TYPE a) { return TYPE(__builtin_fabsf(a)); }                                            \
  inline TYPE __hfma(TYPE a, TYPE b, TYPE c) { return TYPE(__builtin_fmaf(a, b, c)); }                       \
  inline TYPE __hmax(TYPE a, TYPE b) { return TYPE(__builtin_fmaxf(a, b)); }                                 \
  inline TYPE __hmin(TYPE a, TYPE b) { return TYPE(__builtin_fminf(a, b)); }                                 \
  inline bool __heq(TYPE a, TYPE b) { return a == b; }                                                       \
  inline bool __hne(TYPE a, TYPE b) { return a != b; }                                                       \
  inline bool __hlt(TYPE a, TYPE b) { return a < b; }                                                        \
  inline bool __hgt(TYPE a, TYPE b) { return a > b; }                                                        \
  inline bool __hle(TYPE a, TYPE b) { return a <= b; }                                                       \
  inline bool __hge(TYPE a, TYPE b) { return a >= b; }                                                       \
  inline bool __hisnan(TYPE a) { return float(a) != float(a); }                                              \
  inline TYPE hexp(TYPE a) { return TYPE(__builtin_expf(a)); }                                               \
  inline TYPE hexp2(TYPE a) { return TYPE(__builtin_exp2f(a)); }                                             \
  inline TYPE hlog(TYPE a) { return TYPE(__builtin_logf(a)); }                                               \
  inline TYPE hlog2(TYPE a) { return TYPE(__builtin_log2f(a)); }                                             \
  inline TYPE hsqrt(TYPE a) { return TYPE(__builtin_sqrtf(a)); }                                             \
  inline TYPE hrsqrt(TYPE a) { return TYPE(1.0f / __builtin_sqrtf(a)); }                                     \
  inline TYPE hrcp(TYPE a) { return TYPE(1.0f / float(a)); }                                                 \
  inline TYPE hsin(TYPE a) { return TYPE(__builtin_sinf(a)); }                                               \
  inline TYPE hcos(TYPE a) { return TYPE(__builtin_cosf(a)); }                                               \
  inline TYPE htanh(TYPE a) { return TYPE(__builtin_tanhf(a)); }                                             \
  inline TYPE hfloor(TYPE a) { return TYPE(__builtin_floorf(a)); }                                           \
  inline TYPE hceil(TYPE a) { return TYPE(__builtin_ceilf(a)); }                                             \
  inline TYPE2 __hadd2(TYPE2 a, TYPE2 b) { return a + b; }                                                   \
  inline TYPE2 __hsub2(TYPE2 a, TYPE2 b) { return a - b; }                                                   \
  inline TYPE2 __hmul2(TYPE2 a, TYPE2 b) { return a * b; }                                                   \
  inline TYPE2 __h2div(TYPE2 a, TYPE2 b) { return a / b; }                                                   \
  inline TYPE2 __hneg2(TYPE2 a) { return -a; }                                                               \
  inline TYPE2 __habs2(TYPE2 a) { return {__habs(a.x), __habs(a.y)}; }                                       \
  inline TYPE2 __hfma2(TYPE2 a, TYPE2 b, TYPE2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  inline TYPE2 __hmax2(TYPE2 a, TYPE2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                    \
  inline TYPE2 __hmin2(TYPE2 a, TYPE2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                    \
  inline TYPE2 __heq2(TYPE2 a, TYPE2 b) { return {TYPE(float(a.x == b.x)), TYPE(float(a.y == b.y))}; }       \
  inline TYPE2 __hgt2(TYPE2 a, TYPE2 b) { return {TYPE(float(a.x > b.x)), TYPE(float(a.y > b.y))}; }         \
  inline TYPE2 __hge2(TYPE2 a, TYPE2 b) { return {TYPE(float(a.x >= b.x)), TYPE(float(a.y >= b.y))}; }       \
  inline TYPE2 __hlt2(TYPE2 a, TYPE2 b) { return {TYPE(float(a.x < b.x)), TYPE(float(a.y < b.y))}; }         \
  inline bool __hbeq2(TYPE2 a, TYPE2 b) { return a.x == b.x && a.y == b.y; }                                 \
  inline TYPE2 h2exp(TYPE2 a) { return {hexp(a.x), hexp(a.y)}; }                                             \
  inline TYPE2 h2log(TYPE2 a) { return {hlog(a.x), hlog(a.y)}; }                                             \
  inline TYPE2 h2sqrt(TYPE2 a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                          \
  inline TYPE2 h2rsqrt(TYPE2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                       \
  inline TYPE2 h2rcp(TYPE2 a) { return {hrcp(a.x), hrcp(a.y)}; }                                             \
  inline TYPE2 h2tanh(TYPE2 a) { return {htanh(a.x), htanh(a.y)}; }
