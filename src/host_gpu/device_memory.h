#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "portolan_gpu/core.h"

namespace portolan::gpu {

// The device's memory: one stretch of address space, at the same place in the original and in its port, so that
// pointers in buffers compare equal. Buffers are numbered in the order of their allocation, each ends where a page
// ends (16-byte steps), pages that nobody has are not accessible, and addresses are not used twice.
class DeviceMemory {
 public:
  static constexpr uintptr_t kBase = uintptr_t{1} << 44;
  static constexpr size_t kBytes = size_t{1} << 39;  // address space, not memory
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kAlignment = 16;  // the largest that CUDA's vector types ask for

  struct Buffer {
    uintptr_t begin = 0;
    size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    bool alive = false;
  };

  static DeviceMemory& Get() {
    static auto* memory = new DeviceMemory;
    return *memory;
  }

  void* Allocate(size_t bytes, MemoryKind kind);
  bool Free(void* pointer);
  // Index of the buffer in which `pointer` lies; -1 for none.
  int Find(const volatile void* pointer) const;
  const Buffer& buffer(int index) const { return buffers_[static_cast<size_t>(index)]; }
  size_t count() const { return buffers_.size(); }
  size_t in_use() const { return in_use_; }

  bool Contains(const volatile void* address) const { return reinterpret_cast<uintptr_t>(address) - kBase < kBytes; }
  // Whether [address, address + bytes) lies in a live buffer.
  bool InBounds(const volatile void* address, int bytes) const {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - kBase;
    const uint32_t owner = owner_[offset / kPageBytes];
    if (owner == 0) return false;
    const Buffer& buffer = buffers_[owner - 1];
    return reinterpret_cast<uintptr_t>(address) >= buffer.begin &&
           reinterpret_cast<uintptr_t>(address) + static_cast<uintptr_t>(bytes) <= buffer.begin + buffer.bytes;
  }
  // "buffer 3 (4096 bytes), 8 bytes behind its end"
  std::string Describe(const volatile void* address) const;
  // Makes a page that nobody has readable, so that a program that left its buffers can go on.
  void OpenPage(const void* address);

 private:
  DeviceMemory();

  int file_ = -1;
  uintptr_t next_ = kBase;
  size_t in_use_ = 0;
  std::vector<Buffer> buffers_;
  std::map<uintptr_t, int> by_address_;
  uint32_t* owner_ = nullptr;  // by page: number of the buffer, from 1
};

}  // namespace portolan::gpu
