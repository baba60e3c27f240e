// GCC's -fsanitize=thread puts a call in front of every access to memory. These are the calls: they look at the
// accesses of kernels to shared and to device memory, and there is no ThreadSanitizer behind them. Volatile accesses
// to shared memory keep the lanes of a wave in step, as the hardware does: code of the time before __syncwarp counts
// on it.
#include <cstdint>
#include <cstring>

#include "host_gpu/device_memory.h"
#include "host_gpu/scheduler.h"
#include "host_gpu/session.h"
#include "host_gpu/shared_memory.h"

namespace portolan::gpu {
namespace {

void ReportOutOfBounds(const volatile void* address, int bytes, const void* frame) {
  Scheduler& scheduler = Scheduler::Get();
  Place place;
  CapturePlace(frame, scheduler.current().base_frame, &place);
  Session::Get().Report({"out-of-bounds", scheduler.block().number, scheduler.current().index, place, nullptr,
                         std::to_string(bytes) + " bytes at " + DeviceMemory::Get().Describe(address)});
}

void NoteWriter(const void* frame) {
  Scheduler& scheduler = Scheduler::Get();
  Place place;
  CapturePlace(frame, scheduler.current().base_frame, &place);
  Session::Get().SetWriter({"writer", scheduler.block().number, scheduler.current().index, place, nullptr, ""});
}

__attribute__((always_inline)) inline void Look(const volatile void* address, int bytes, AccessKind kind,
                                                bool is_volatile, const void* code, const void* frame) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at - DeviceMemory::kBase < DeviceMemory::kBytes) {
    if (!Scheduler::running()) return;
    if (!DeviceMemory::Get().InBounds(address, bytes)) ReportOutOfBounds(address, bytes, frame);
    if (kind != AccessKind::kRead && Session::Watches(address, bytes)) NoteWriter(frame);
    if (is_volatile) Scheduler::Get().Spin(frame, 1);
    return;
  }
  if (!SharedMemory::Contains(address) || !Scheduler::running()) return;
  // The write behind the last volatile read must not overtake that read of another lane.
  bool& in_step = Scheduler::current().in_step;
  if (is_volatile || (in_step && kind != AccessKind::kRead)) {
    in_step = is_volatile;
    Scheduler::Get().Meet("a volatile access", 0, 0, true, frame);
    if (is_volatile) Scheduler::Get().Spin(frame, 1);
  }
  SharedMemory::Get().Check(address, bytes, kind, reinterpret_cast<uintptr_t>(code), frame);
}

}  // namespace

void AtomicAccess(const volatile void* address, int bytes) {
  Scheduler& scheduler = Scheduler::Get();
  if (!scheduler.running()) return;
  Look(address, bytes, AccessKind::kAtomic, false, __builtin_return_address(0), __builtin_frame_address(0));
  scheduler.Spin(__builtin_frame_address(0), 1);
}

}  // namespace portolan::gpu

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names
#define PORTOLAN_HOOK(NAME, BYTES, KIND, VOLATILE)                                                              \
  extern "C" void NAME(void* address) {                                                                         \
    portolan::gpu::Look(address, BYTES, portolan::gpu::AccessKind::KIND, VOLATILE, __builtin_return_address(0), \
                        __builtin_frame_address(0));                                                            \
  }
#define PORTOLAN_HOOKS(BYTES)                                              \
  PORTOLAN_HOOK(__tsan_read##BYTES, BYTES, kRead, false)                   \
  PORTOLAN_HOOK(__tsan_write##BYTES, BYTES, kWrite, false)                 \
  PORTOLAN_HOOK(__tsan_unaligned_read##BYTES, BYTES, kRead, false)         \
  PORTOLAN_HOOK(__tsan_unaligned_write##BYTES, BYTES, kWrite, false)       \
  PORTOLAN_HOOK(__tsan_volatile_read##BYTES, BYTES, kRead, true)           \
  PORTOLAN_HOOK(__tsan_volatile_write##BYTES, BYTES, kWrite, true)         \
  PORTOLAN_HOOK(__tsan_unaligned_volatile_read##BYTES, BYTES, kRead, true) \
  PORTOLAN_HOOK(__tsan_unaligned_volatile_write##BYTES, BYTES, kWrite, true)
PORTOLAN_HOOKS(1)
PORTOLAN_HOOKS(2)
PORTOLAN_HOOKS(4)
PORTOLAN_HOOKS(8)
PORTOLAN_HOOKS(16)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, unsigned long bytes) {
  portolan::gpu::Look(address, static_cast<int>(bytes), portolan::gpu::AccessKind::kRead, false,
                      __builtin_return_address(0), __builtin_frame_address(0));
}
void __tsan_write_range(void* address, unsigned long bytes) {
  portolan::gpu::Look(address, static_cast<int>(bytes), portolan::gpu::AccessKind::kWrite, false,
                      __builtin_return_address(0), __builtin_frame_address(0));
}

// std::atomic of the program. Order arguments are what the compiler passes; all are carried out as sequentially
// consistent.
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}

#define PORTOLAN_ATOMICS(BITS, TYPE)                                                                                  \
  extern "C" TYPE __tsan_atomic##BITS##_load(const volatile TYPE* p, int) {                                           \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                                                     \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                      \
  }                                                                                                                   \
  extern "C" void __tsan_atomic##BITS##_store(volatile TYPE* p, TYPE v, int) {                                        \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                                                     \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                         \
  }                                                                                                                   \
  extern "C" TYPE __tsan_atomic##BITS##_exchange(volatile TYPE* p, TYPE v, int) {                                     \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                                                     \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                   \
  extern "C" TYPE __tsan_atomic##BITS##_compare_exchange_val(volatile TYPE* p, TYPE expected, TYPE v, int, int) {     \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                                                     \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
    return expected;                                                                                                  \
  }                                                                                                                   \
  extern "C" bool __tsan_atomic##BITS##_compare_exchange_strong(volatile TYPE* p, TYPE* expected, TYPE v, int, int) { \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                                                     \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
  }                                                                                                                   \
  extern "C" bool __tsan_atomic##BITS##_compare_exchange_weak(volatile TYPE* p, TYPE* expected, TYPE v, int a,        \
                                                              int b) {                                                \
    return __tsan_atomic##BITS##_compare_exchange_strong(p, expected, v, a, b);                                       \
  }
#define PORTOLAN_FETCH(BITS, TYPE, NAME)                                              \
  extern "C" TYPE __tsan_atomic##BITS##_fetch_##NAME(volatile TYPE* p, TYPE v, int) { \
    portolan::gpu::AtomicAccess(p, sizeof(TYPE));                                     \
    return __atomic_fetch_##NAME(p, v, __ATOMIC_SEQ_CST);                             \
  }
#define PORTOLAN_ALL_ATOMICS(BITS, TYPE) \
  PORTOLAN_ATOMICS(BITS, TYPE)           \
  PORTOLAN_FETCH(BITS, TYPE, add)        \
  PORTOLAN_FETCH(BITS, TYPE, sub)        \
  PORTOLAN_FETCH(BITS, TYPE, and)        \
  PORTOLAN_FETCH(BITS, TYPE, or)         \
  PORTOLAN_FETCH(BITS, TYPE, xor)        \
  PORTOLAN_FETCH(BITS, TYPE, nand)
PORTOLAN_ALL_ATOMICS(8, uint8_t)
PORTOLAN_ALL_ATOMICS(16, uint16_t)
PORTOLAN_ALL_ATOMICS(32, uint32_t)
PORTOLAN_ALL_ATOMICS(64, uint64_t)
// NOLINTEND(bugprone-reserved-identifier)
