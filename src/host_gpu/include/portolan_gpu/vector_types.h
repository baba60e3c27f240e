#pragma once

#include "portolan_gpu/core.h"

namespace portolan::gpu {
// Elements of a vector type, of two and more; 0: another type.
template <typename V>
inline constexpr int kLanes = 0;
}  // namespace portolan::gpu

#define PORTOLAN_VECTORS(BASE, T, ALIGN2, ALIGN4)                                      \
  struct BASE##1 {                                                                     \
    T x;                                                                               \
  };                                                                                   \
  struct alignas(ALIGN2) BASE##2 {                                                     \
    T x, y;                                                                            \
  };                                                                                   \
  PORTOLAN_VECTOR3(BASE, T)                                                            \
  struct alignas(ALIGN4) BASE##4 {                                                     \
    T x, y, z, w;                                                                      \
  };                                                                                   \
  inline constexpr BASE##1 make_##BASE##1(T x) { return {x}; }                         \
  inline constexpr BASE##2 make_##BASE##2(T x, T y) { return {x, y}; }                 \
  inline constexpr BASE##3 make_##BASE##3(T x, T y, T z) { return {x, y, z}; }         \
  inline constexpr BASE##4 make_##BASE##4(T x, T y, T z, T w) { return {x, y, z, w}; } \
  namespace portolan::gpu {                                                            \
  template <>                                                                          \
  inline constexpr int kLanes<BASE##2> = 2;                                            \
  template <>                                                                          \
  inline constexpr int kLanes<BASE##3> = 3;                                            \
  template <>                                                                          \
  inline constexpr int kLanes<BASE##4> = 4;                                            \
  }

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

#ifdef PORTOLAN_GPU_HIP
// HIP's vectors have arithmetic, element by element; CUDA's have none, and projects bring their own. Templates, so that
// a project's function for one type goes before these.
namespace portolan::gpu {
template <typename V>
concept HipVector = kLanes<V> >
0;

template <HipVector V, typename F>
PORTOLAN_INLINE V ByElement(const V& a, const V& b, F f) {
  V result = a;
  result.x = f(a.x, b.x);
  result.y = f(a.y, b.y);
  if constexpr (kLanes<V> >= 3) result.z = f(a.z, b.z);
  if constexpr (kLanes<V> == 4) result.w = f(a.w, b.w);
  return result;
}
template <HipVector V>
PORTOLAN_INLINE V Filled(decltype(V::x) value) {
  V result;
  result.x = result.y = value;
  if constexpr (kLanes<V> >= 3) result.z = value;
  if constexpr (kLanes<V> == 4) result.w = value;
  return result;
}
}  // namespace portolan::gpu

#define PORTOLAN_VECTOR_OPERATOR(OP)                                                                           \
  template <portolan::gpu::HipVector V>                                                                        \
  PORTOLAN_INLINE V operator OP(const V& a, const V& b) {                                                      \
    return portolan::gpu::ByElement(a, b, [](auto p, auto q) { return static_cast<decltype(V::x)>(p OP q); }); \
  }                                                                                                            \
  template <portolan::gpu::HipVector V>                                                                        \
  PORTOLAN_INLINE V operator OP(const V& a, decltype(V::x) b) {                                                \
    return a OP portolan::gpu::Filled<V>(b);                                                                   \
  }                                                                                                            \
  template <portolan::gpu::HipVector V>                                                                        \
  PORTOLAN_INLINE V operator OP(decltype(V::x) a, const V& b) {                                                \
    return portolan::gpu::Filled<V>(a) OP b;                                                                   \
  }                                                                                                            \
  template <portolan::gpu::HipVector V, typename B>                                                            \
  PORTOLAN_INLINE V& operator OP##=(V& a, const B& b) {                                                        \
    return a = a OP b;                                                                                         \
  }
PORTOLAN_VECTOR_OPERATOR(+)
PORTOLAN_VECTOR_OPERATOR(-)
PORTOLAN_VECTOR_OPERATOR(*)
PORTOLAN_VECTOR_OPERATOR(/)
#undef PORTOLAN_VECTOR_OPERATOR
#endif
