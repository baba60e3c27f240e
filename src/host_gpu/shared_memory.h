#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host_gpu/place.h"
#include "portolan_gpu/core.h"

namespace portolan::gpu {

enum class AccessKind { kRead, kWrite, kAtomic };

// The shared memory of the resident blocks, one slot each, and who touched what in it since the last barrier.
class SharedMemory {
 public:
  static constexpr size_t kSlotBytes = size_t{512} * 1024;

  static SharedMemory& Get() {
    static auto* memory = new SharedMemory;
    return *memory;
  }

  void StartLaunch(size_t dynamic_bytes, size_t slots);
  void AddSlots(size_t slots);
  void StartBlock(int slot);
  void EndLaunch(const LaunchSpec& launch);
  void* Variable(SharedSlot* slot, size_t bytes, size_t alignment);
  void* Dynamic() const;

  // Without an object: asked in front of every access of a kernel.
  static bool Contains(const volatile void* address) { return reinterpret_cast<uintptr_t>(address) - base_ < mapped_; }
  // In front of the access, whose code is at `code`.
  void Check(const volatile void* address, int bytes, AccessKind kind, uintptr_t code, const void* frame);

 private:
  // One kind of access to an element: when and by whom. Elements are words of four bytes, or what is smaller.
  struct Access {
    int64_t epoch = 0;
    int32_t wave_epoch = 0;
    int16_t item = -1;
    bool atomic = false;
    uint32_t code = 0;  // offset in the program, 4 GiB at most
  };
  struct Cell {
    Access write;
    Access read[2];
    bool write_changed = false;  // a write of what was there already races with nobody
  };
  struct PendingWrite {
    uintptr_t address = 0;
    int bytes = 0;
    uint64_t before[2] = {};
    Cell* cell = nullptr;
    bool conflict = false;
    Access other;
    const char* verb = "";
    Access now;
    Place place;
    int64_t block = 0;
    int item = 0;
  };

  void SettlePendingWrite();
  void CheckElement(uintptr_t offset, uintptr_t address, int bytes, AccessKind kind, const Access& now,
                    const void* frame);
  bool Conflicts(const Access& before, const Access& now) const;
  void ReportRace(const Access& other, const char* verb, size_t offset, const Place& place, int64_t block, int item);
  std::string NameOf(size_t offset) const;

  static inline constinit uintptr_t base_ = 0;
  static inline constinit size_t mapped_ = 0;
  Cell* cells_ = nullptr;
  size_t dynamic_bytes_ = 0;
  size_t used_ = 0;      // with the gaps between variables
  size_t declared_ = 0;  // without
  size_t slots_ = 1;
  PendingWrite pending_;
  std::vector<uint8_t> owned_;  // by word of a slot: belongs to a variable
};

}  // namespace portolan::gpu
