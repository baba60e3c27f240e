#pragma once

// What the translator writes in the place of __shared__ declarations.
//   __shared__ float a[32][33], b;   ->  struct portolan_shared_7 { float a[32][33], b; }; ... auto& a = ...; auto& b =
//   ... extern __shared__ int s[];       ->  int (&s)[] = ...

#include "portolan_gpu/core.h"

namespace portolan::gpu {

template <typename T>
PORTOLAN_INLINE T& SharedVariable(SharedSlot* slot) {
  return *static_cast<T*>(SharedVariable(slot, sizeof(T), alignof(T)));
}

}  // namespace portolan::gpu

#define PORTOLAN_GPU_SHARED(STRUCT, VARIABLE)         \
  static ::portolan::gpu::SharedSlot VARIABLE##_slot; \
  auto& VARIABLE = ::portolan::gpu::SharedVariable<STRUCT>(&VARIABLE##_slot)
#define PORTOLAN_GPU_DYNAMIC_SHARED(TYPE, NAME) \
  TYPE(&NAME)[] = *reinterpret_cast<TYPE(*)[]>(::portolan::gpu::DynamicShared())
#define HIP_DYNAMIC_SHARED(TYPE, NAME) PORTOLAN_GPU_DYNAMIC_SHARED(TYPE, NAME);
