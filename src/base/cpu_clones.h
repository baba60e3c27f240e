#pragma once

// Put before a function with a hot loop: it is compiled for baseline x86-64, AVX2 and AVX-512, and the loader picks the
// one that the processor has. Helpers that such a function calls must be PORTOLAN_CPU_INLINE to be compiled with it,
// and an OpenMP region must stand outside: its body becomes a function of its own, which is not cloned. Sanitizers do
// not run before the loader's choice, and clang 14 has no clones of this form: one baseline version there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(PORTOLAN_SANITIZED)
#define PORTOLAN_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PORTOLAN_CPU_CLONES
#endif
#define PORTOLAN_CPU_INLINE inline __attribute__((always_inline))
