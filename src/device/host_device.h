#pragma once

// Marks a function that host code, CPU bodies and GPU kernels share. Only what both sides need is marked: arithmetic on
// number formats, sizes of rows.
#if defined(__CUDACC__) && !defined(__clang__)
#define PORTOLAN_HOST_DEVICE __host__ __device__
#elif defined(__HIP__)
#define PORTOLAN_HOST_DEVICE __attribute__((host)) __attribute__((device))
#else
#define PORTOLAN_HOST_DEVICE
#endif
