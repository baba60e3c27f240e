#pragma once

// The namespace whose kernels a test calls: the build of a test for another backend defines PORTOLAN_TEST_BACKEND (its
// gpu bodies; PORTOLAN_BACKEND is the same name), for example emu64.
#ifdef PORTOLAN_TEST_BACKEND
#include "kernels/gpu_kernels.h"
#else
#define PORTOLAN_TEST_BACKEND cpu
#endif

namespace portolan::kernels {
namespace PORTOLAN_TEST_BACKEND {}
namespace backend = PORTOLAN_TEST_BACKEND;
}  // namespace portolan::kernels
