#pragma once

#include "portolan_gpu/core.h"

#define PORTOLAN_VECTORS(BASE, T, ALIGN2, ALIGN4)                              \
  struct BASE##1 {                                                             \
    T x;                                                                       \
  };                                                                           \
  struct alignas(ALIGN2) BASE##2 {                                             \
    T x, y;                                                                    \
  };                                                                           \
  PORTOLAN_VECTOR3(BASE, T)                                                    \
  struct alignas(ALIGN4) BASE##4 {                                             \
    T x, y, z, w;                                                              \
  };                                                                           \
  inline constexpr BASE##1 make_##BASE##1(T x) { return {x}; }                 \
  inline constexpr BASE##2 make_##BASE##2(T x, T y) { return {x, y}; }         \
  inline constexpr BASE##3 make_##BASE##3(T x, T y, T z) { return {x, y, z}; } \
  inline constexpr BASE##4 make_##BASE##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define PORTOLAN_VECTOR3(BASE, T) \
  struct BASE##3 {                \
    T x, y, z;                    \
  };
PORTOLAN_VECTORS(char, signed char, 2, 4)
PORTOLAN_VECTORS(uchar, unsigned char, 2, 4)
PORTOLAN_VECTORS(short, short, 4, 8)
PORTOLAN_VECTORS(ushort, unsigned short, 4, 8)
PORTOLAN_VECTORS(int, int, 8, 16)
PORTOLAN_VECTORS(long, long, 16, 16)
PORTOLAN_VECTORS(ulong, unsigned long, 16, 16)
PORTOLAN_VECTORS(longlong, long long, 16, 16)
PORTOLAN_VECTORS(ulonglong, unsigned long long, 16, 16)
PORTOLAN_VECTORS(float, float, 8, 16)
PORTOLAN_VECTORS(double, double, 16, 16)
#undef PORTOLAN_VECTOR3
#define PORTOLAN_VECTOR3(BASE, T)  // core.h has uint3
PORTOLAN_VECTORS(uint, unsigned int, 8, 16)
#undef PORTOLAN_VECTOR3
#undef PORTOLAN_VECTORS
