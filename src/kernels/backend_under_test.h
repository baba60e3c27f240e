#pragma once

// The namespace whose kernels a test calls: the build of a test for another backend defines PORTOLAN_TEST_BACKEND.
#ifndef PORTOLAN_TEST_BACKEND
#define PORTOLAN_TEST_BACKEND cpu
#endif

namespace portolan::kernels {
namespace PORTOLAN_TEST_BACKEND {}
namespace backend = PORTOLAN_TEST_BACKEND;
}  // namespace portolan::kernels
