#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define PORTOLAN_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PORTOLAN_FIBER_ASAN 1
#endif
#endif
#ifdef PORTOLAN_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace portolan::device::emu {

// A stack of its own and the place where it stopped. A default-made Fiber stands for the thread that starts the others.
// Switching costs a few nanoseconds: Boost.Context's bare jump, and not boost::context::fiber, because work-items jump
// from one to the next without going through a scheduler.
class Fiber {
 public:
  Fiber() = default;
  // Maps a stack with a guard page below it. `entry` must not return. Aborts when the system has no memory left.
  // `stack_bytes` is a multiple of 4096; 0 stands for the size that serves our own kernels.
  Fiber(void (*entry)(), int color, std::size_t stack_bytes = 0);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Forgets where the fiber stopped: the next switch starts `entry` anew. Nothing on its stack is destroyed.
  void Restart();

  // Leaves `from` (which must be the running one) for `to`; returns when somebody switches to `from` again.
  static void Switch(Fiber& from, Fiber& to) {
    from.to_ = &to;
#ifdef PORTOLAN_FIBER_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_, to.stack_bytes_);
#endif
    Arrive(boost::context::detail::jump_fcontext(to.context_, &from));
#ifdef PORTOLAN_FIBER_ASAN
    __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
  }

 private:
  static void Arrive(boost::context::detail::transfer_t transfer) {
    static_cast<Fiber*>(transfer.data)->context_ = transfer.fctx;
  }
  static void Start(boost::context::detail::transfer_t transfer);

  boost::context::detail::fcontext_t context_ = nullptr;
  void (*entry_)() = nullptr;
  Fiber* to_ = nullptr;  // whom it left for, so that a fiber that starts knows itself
  void* map_ = nullptr;
  char* top_ = nullptr;
#ifdef PORTOLAN_FIBER_ASAN
  void* fake_stack_ = nullptr;
#endif
  const void* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
};

}  // namespace portolan::device::emu
