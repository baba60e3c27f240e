#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "host_gpu/place.h"
#include "host_gpu/scheduler.h"
#include "portolan_gpu/core.h"

namespace portolan::gpu {

// What a GPU does not define, or defines otherwise on another wave size.
struct Fault {
  const char* kind;
  int64_t block;
  int item;
  Place place;
  const Place* other;  // a second place that matters; nullptr for none
  std::string detail;
};

// Seconds of the real clock; the program sees VirtualSeconds().
double RealSeconds();

// The link to `portolan verify`, which starts the program with the environment variable PORTOLAN_HOST_GPU =
// "socket,memory file,seed,poison,memory limit,watched launch,watched address". Without it the program runs alone, and
// faults go to standard error.
//
// Messages are lines of fields between tabs: alloc, free, grid, launch, observe, shared, fault, writer, end. After
// launch and observe the program waits for one byte, so that the other program can catch up and their memories be
// compared.
class Session {
 public:
  static Session& Get() {
    static auto* session = new Session;
    return *session;
  }

  const Schedule& schedule() const { return schedule_; }
  int wave_size() const { return wave_size_; }
  int poison() const { return poison_; }
  size_t memory_limit() const { return memory_limit_; }
  int memory_file() const { return memory_file_; }
  uintptr_t code_base() const { return code_base_; }

  // Whether a write to `bytes` at `address` is the one asked for: who is the last in one launch to write an element.
  static bool Watches(const volatile void* address, int bytes) {
    return watched_ - reinterpret_cast<uintptr_t>(address) < static_cast<uintptr_t>(bytes);
  }
  void SetWriter(const Fault& writer);

  void Send(const std::string& line);
  void BeforeLaunch(const LaunchSpec& launch);
  void Report(const Fault& fault);
  void AfterLaunch(const LaunchSpec& launch);
  void Observe(const void* pointer, size_t bytes, const char* file, int line);
  void CheckSharedSize(const LaunchSpec& launch, size_t bytes);
  [[noreturn]] void End(const std::string& why);

 private:
  Session();
  void Wait();
  std::string FaultText(const Fault& fault) const;

  Schedule schedule_;
  int wave_size_ = 32;
  int poison_ = 0;
  size_t memory_limit_ = size_t{4} << 30;
  int socket_ = -1;
  int memory_file_ = -1;
  uintptr_t code_base_ = 0;
  uint64_t watched_launch_ = 0;
  uintptr_t watched_address_ = 0;
  static inline constinit uintptr_t watched_ = 0;  // the address while the launch runs
  std::string writer_;
  std::set<std::pair<std::string, uintptr_t>> reported_;
  std::set<std::string> shared_sizes_;
};

}  // namespace portolan::gpu
