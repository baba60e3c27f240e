#include "host_gpu/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "host_gpu/session.h"

namespace portolan::gpu {
namespace {

constexpr size_t kGapBytes = 16 * DeviceMemory::kPageBytes;  // between buffers

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

}  // namespace

DeviceMemory::DeviceMemory() {
  file_ = Session::Get().memory_file();
  if (file_ < 0) {
    file_ = memfd_create("portolan", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kBytes)) != 0) Unsupported("no memory file");
  }
  void* map = mmap(reinterpret_cast<void*>(kBase), kBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                   file_, 0);
  if (map != reinterpret_cast<void*>(kBase)) Unsupported("the device's address space is taken");
  void* owner = mmap(nullptr, kBytes / kPageBytes * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (owner == MAP_FAILED) Unsupported("no address space for the table of pages");
  owner_ = static_cast<uint32_t*>(owner);
}

void* DeviceMemory::Allocate(size_t bytes, MemoryKind kind) {
  Session& session = Session::Get();
  const size_t size = RoundUp(bytes == 0 ? 1 : bytes, kAlignment);
  const size_t pages = RoundUp(size, kPageBytes);
  if (in_use_ + pages > session.memory_limit() || next_ + pages + 2 * kGapBytes > kBase + kBytes) return nullptr;
  const uintptr_t first_page = next_ + kGapBytes;
  next_ = first_page + pages;
  if (mprotect(reinterpret_cast<void*>(first_page), pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  if (session.poison() != 0) std::memset(reinterpret_cast<void*>(first_page), session.poison(), pages);
  Buffer buffer;
  buffer.begin = first_page + pages - size;
  buffer.bytes = bytes;
  buffer.kind = kind;
  buffer.alive = true;
  buffers_.push_back(buffer);
  const auto number = static_cast<uint32_t>(buffers_.size());
  const uintptr_t page = (first_page - kBase) / kPageBytes;
  for (size_t i = 0; i < pages / kPageBytes; ++i) owner_[page + i] = number;
  by_address_[buffer.begin] = static_cast<int>(number) - 1;
  in_use_ += pages;
  session.Send("alloc\t" + std::to_string(number - 1) + "\t" + std::to_string(buffer.begin - kBase) + "\t" +
               std::to_string(bytes) + "\t" + std::to_string(static_cast<int>(kind)));
  return reinterpret_cast<void*>(buffer.begin);
}

bool DeviceMemory::Free(void* pointer) {
  const auto found = by_address_.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == by_address_.end()) return false;
  Buffer& buffer = buffers_[static_cast<size_t>(found->second)];
  Session::Get().Send("free\t" + std::to_string(found->second));
  const uintptr_t begin = buffer.begin / kPageBytes * kPageBytes;
  const size_t pages = RoundUp(buffer.begin + (buffer.bytes == 0 ? 1 : buffer.bytes) - begin, kPageBytes);
  mprotect(reinterpret_cast<void*>(begin), pages, PROT_NONE);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin - kBase),
            static_cast<off_t>(pages));
  for (size_t i = 0; i < pages / kPageBytes; ++i) owner_[(begin - kBase) / kPageBytes + i] = 0;
  in_use_ -= pages;
  buffer.alive = false;
  by_address_.erase(found);
  return true;
}

int DeviceMemory::Find(const volatile void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return -1;
  --after;
  const Buffer& found = buffer(after->second);
  return address < found.begin + found.bytes || address == found.begin ? after->second : -1;
}

std::string DeviceMemory::Describe(const volatile void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::string text;
  size_t nearest = SIZE_MAX;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    const size_t before = at < buffer.begin ? buffer.begin - at : SIZE_MAX;
    const size_t behind = at >= buffer.begin + buffer.bytes ? at - buffer.begin - buffer.bytes : SIZE_MAX;
    const bool inside = before == SIZE_MAX && behind == SIZE_MAX;
    const size_t distance = inside ? 0 : std::min(before, behind);
    if (distance >= nearest) continue;
    nearest = distance;
    text = "buffer " + std::to_string(i) + " of " + std::to_string(buffer.bytes) + " bytes";
    if (!buffer.alive) text += ", which was freed";
    if (inside) continue;
    text += before < behind ? ", " + std::to_string(before) + " bytes in front of it"
                            : ", " + std::to_string(behind) + " bytes behind its end";
  }
  return text.empty() ? "no buffer" : text;
}

void DeviceMemory::OpenPage(const void* address) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) / kPageBytes * kPageBytes;
  mprotect(reinterpret_cast<void*>(page), kPageBytes, PROT_READ | PROT_WRITE);
}

}  // namespace portolan::gpu
