#pragma once

// Complex numbers as CUDA's C interface has them: pairs.

#include <cmath>

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define PORTOLAN_COMPLEX(C, T, S, MAKE)                                                            \
  PORTOLAN_INLINE T cuCreal##S(C a) { return a.x; }                                                \
  PORTOLAN_INLINE T cuCimag##S(C a) { return a.y; }                                                \
  PORTOLAN_INLINE C MAKE(T real, T imaginary) { return {real, imaginary}; }                        \
  PORTOLAN_INLINE C cuConj##S(C a) { return {a.x, -a.y}; }                                         \
  PORTOLAN_INLINE C cuCadd##S(C a, C b) { return {a.x + b.x, a.y + b.y}; }                         \
  PORTOLAN_INLINE C cuCsub##S(C a, C b) { return {a.x - b.x, a.y - b.y}; }                         \
  PORTOLAN_INLINE C cuCmul##S(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  PORTOLAN_INLINE T cuCabs##S(C a) { return std::hypot(a.x, a.y); }                                \
  PORTOLAN_INLINE C cuCfma##S(C a, C b, C c) { return cuCadd##S(cuCmul##S(a, b), c); }             \
  PORTOLAN_INLINE C cuCdiv##S(C a, C b) {                                                          \
    const T scale = T(1) / (std::fabs(b.x) + std::fabs(b.y));                                      \
    const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                \
    const T inverse = T(1) / (bx * bx + by * by);                                                  \
    return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                         \
  }
PORTOLAN_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
PORTOLAN_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef PORTOLAN_COMPLEX

PORTOLAN_INLINE cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
PORTOLAN_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
PORTOLAN_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
