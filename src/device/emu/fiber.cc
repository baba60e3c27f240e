#include "device/emu/fiber.h"

#include <sys/mman.h>

#include "base/check.h"

namespace portolan::device::emu {
namespace {

constexpr std::size_t kGuardBytes = 4096;
#ifdef PORTOLAN_FIBER_ASAN
constexpr std::size_t kStackBytes = 256 * 1024;  // ASan's frames have red zones
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif
// Stacks lie a multiple of 4 KiB apart, so that their tops would share one set of the first-level cache: each starts a
// few lines lower than the one before.
constexpr std::size_t kColorBytes = 192;
constexpr std::size_t kColors = 21;

}  // namespace

Fiber::Fiber(void (*entry)(), int color, std::size_t stack_bytes) : entry_(entry) {
  stack_bytes_ = stack_bytes == 0 ? kStackBytes : stack_bytes;
  map_ = mmap(nullptr, stack_bytes_ + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, 0);
  PORTOLAN_CHECK(map_ != MAP_FAILED, "no memory for the stack of a work-item");
  PORTOLAN_CHECK(mprotect(map_, kGuardBytes, PROT_NONE) == 0, "no guard page for the stack of a work-item");
  stack_ = static_cast<char*>(map_) + kGuardBytes;
  top_ =
      static_cast<char*>(map_) + kGuardBytes + stack_bytes_ - (static_cast<std::size_t>(color) % kColors) * kColorBytes;
  Restart();
}

Fiber::~Fiber() {
  if (map_ != nullptr) munmap(map_, stack_bytes_ + kGuardBytes);
}

void Fiber::Restart() {
#ifdef PORTOLAN_FIBER_ASAN
  __asan_unpoison_memory_region(stack_, stack_bytes_);
  fake_stack_ = nullptr;
#endif
  context_ = boost::context::detail::make_fcontext(top_, stack_bytes_ / 2, &Fiber::Start);
}

void Fiber::Start(boost::context::detail::transfer_t transfer) {
  auto& from = *static_cast<Fiber*>(transfer.data);
  Arrive(transfer);
#ifdef PORTOLAN_FIBER_ASAN
  // ASan tells the bounds of the stack that was left: the only way to learn the thread's own.
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (from.stack_ == nullptr) {
    from.stack_ = bottom;
    from.stack_bytes_ = bytes;
  }
#endif
  from.to_->entry_();
  PORTOLAN_CHECK(false, "the entry of a fiber returned");
}

}  // namespace portolan::device::emu
