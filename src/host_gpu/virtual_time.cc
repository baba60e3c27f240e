// Clocks for the program that is being compared: the same in every run, so that what it prints of its time is too. Each
// reading moves them on by a microsecond. The linker prefers these to the C library's.
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "portolan_gpu/core.h"

namespace portolan::gpu {
namespace {

constexpr int64_t kStartSeconds = 1'700'000'000;
constexpr int64_t kStepNanoseconds = 1000;

int64_t NextNanoseconds() {
  static int64_t now = 0;
  return now += kStepNanoseconds;
}

}  // namespace

double VirtualSeconds() { return 1e-9 * static_cast<double>(NextNanoseconds()); }
uint64_t VirtualClock() { return static_cast<uint64_t>(NextNanoseconds()); }

}  // namespace portolan::gpu

extern "C" {

int clock_gettime(clockid_t, timespec* time) noexcept {
  const int64_t now = portolan::gpu::NextNanoseconds();
  time->tv_sec = portolan::gpu::kStartSeconds + now / 1'000'000'000;
  time->tv_nsec = now % 1'000'000'000;
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  const int64_t now = portolan::gpu::NextNanoseconds();
  time->tv_sec = portolan::gpu::kStartSeconds + now / 1'000'000'000;
  time->tv_usec = now / 1000 % 1'000'000;
  return 0;
}

time_t time(time_t* result) noexcept {
  const time_t now = portolan::gpu::kStartSeconds;
  if (result != nullptr) *result = now;
  return now;
}

clock_t clock() noexcept { return static_cast<clock_t>(portolan::gpu::NextNanoseconds() / 1000); }

}  // extern "C"
