#pragma once

#include "portolan_gpu/core.h"

namespace portolan::gpu {

// Copies behind the back of the checks: the two halves of an atomic operation, between which nobody else runs.
void CopyUnseen(void* to, const volatile void* from, size_t bytes);
void StoreUnseen(volatile void* to, const void* from, size_t bytes);

template <typename T, typename Change>
PORTOLAN_INLINE T Update(T* address, Change change) {
  AtomicAccess(address, sizeof(T));
  T before;
  CopyUnseen(&before, address, sizeof(T));
  const T after = change(before);
  StoreUnseen(address, &after, sizeof(T));
  return before;
}

template <typename T>
struct Same {
  using Type = T;
};

}  // namespace portolan::gpu

#define PORTOLAN_ATOMIC(NAME, EXPRESSION)                                                        \
  template <typename T>                                                                          \
  PORTOLAN_INLINE T NAME(T* address, typename portolan::gpu::Same<T>::Type b) {                  \
    return portolan::gpu::Update(address, [b](T a) -> T { return static_cast<T>(EXPRESSION); }); \
  }                                                                                              \
  template <typename T>                                                                          \
  PORTOLAN_INLINE T NAME(volatile T* address, typename portolan::gpu::Same<T>::Type b) {         \
    return NAME(const_cast<T*>(address), b);                                                     \
  }                                                                                              \
  template <typename T>                                                                          \
  PORTOLAN_INLINE T NAME##_block(T* address, typename portolan::gpu::Same<T>::Type b) {          \
    return NAME(address, b);                                                                     \
  }                                                                                              \
  template <typename T>                                                                          \
  PORTOLAN_INLINE T NAME##_system(T* address, typename portolan::gpu::Same<T>::Type b) {         \
    return NAME(address, b);                                                                     \
  }
PORTOLAN_ATOMIC(atomicAdd, a + b)
PORTOLAN_ATOMIC(atomicSub, a - b)
PORTOLAN_ATOMIC(atomicMin, b < a ? b : a)
PORTOLAN_ATOMIC(atomicMax, a < b ? b : a)
PORTOLAN_ATOMIC(atomicAnd, a& b)
PORTOLAN_ATOMIC(atomicOr, a | b)
PORTOLAN_ATOMIC(atomicXor, a ^ b)
PORTOLAN_ATOMIC(atomicInc, a >= b ? 0 : a + 1)
PORTOLAN_ATOMIC(atomicDec, a == 0 || a > b ? b : a - 1)
PORTOLAN_ATOMIC(atomicExch, (static_cast<void>(a), b))
PORTOLAN_ATOMIC(unsafeAtomicAdd, a + b)
PORTOLAN_ATOMIC(safeAtomicAdd, a + b)
PORTOLAN_ATOMIC(atomicAddNoRet, a + b)
#undef PORTOLAN_ATOMIC

template <typename T>
PORTOLAN_INLINE T atomicCAS(T* address, typename portolan::gpu::Same<T>::Type expected,
                            typename portolan::gpu::Same<T>::Type desired) {
  const T result = portolan::gpu::Update(address, [&](T a) { return a == expected ? desired : a; });
  return result;
}
template <typename T>
PORTOLAN_INLINE T atomicCAS(volatile T* address, typename portolan::gpu::Same<T>::Type expected,
                            typename portolan::gpu::Same<T>::Type desired) {
  return atomicCAS(const_cast<T*>(address), expected, desired);
}
template <typename T>
PORTOLAN_INLINE T atomicCAS_system(T* address, typename portolan::gpu::Same<T>::Type expected,
                                   typename portolan::gpu::Same<T>::Type desired) {
  return atomicCAS(address, expected, desired);
}
template <typename T>
PORTOLAN_INLINE T atomicCAS_block(T* address, typename portolan::gpu::Same<T>::Type expected,
                                  typename portolan::gpu::Same<T>::Type desired) {
  return atomicCAS(address, expected, desired);
}

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 1
#define __NV_THREAD_SCOPE_BLOCK 2
#define __NV_THREAD_SCOPE_CLUSTER 3
#define __NV_THREAD_SCOPE_DEVICE 4
#define __NV_THREAD_SCOPE_SYSTEM 5
template <typename T>
PORTOLAN_INLINE T __nv_atomic_load_n(const T* address, int = 0, int = 0) {
  return portolan::gpu::Update(const_cast<T*>(address), [](T a) { return a; });
}
template <typename T>
PORTOLAN_INLINE void __nv_atomic_store_n(T* address, T value, int = 0, int = 0) {
  portolan::gpu::Update(address, [value](T) { return value; });
}
template <typename T>
PORTOLAN_INLINE T __nv_atomic_fetch_add(T* address, T value, int = 0, int = 0) {
  return atomicAdd(address, value);
}
#ifdef PORTOLAN_GPU_HIP
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
#define __hip_atomic_load(P, ...) __nv_atomic_load_n(P)
#define __hip_atomic_store(P, V, ...) __nv_atomic_store_n(P, V)
#define __hip_atomic_fetch_add(P, V, ...) atomicAdd(P, V)
#endif
