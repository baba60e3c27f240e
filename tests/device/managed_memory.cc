// The tests of the kernels keep their tensors in std::vector. Linked into their CUDA build, this puts all that `new`
// hands out into managed memory, which host and GPU both reach, so that the same sources run there. For tests only: it
// serves powers of two from one reservation and gives nothing back to the system.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

namespace {

constexpr std::size_t kReservedBytes = std::size_t{8} << 30;
constexpr int kClasses = 40;  // 16 bytes times a power of two

struct Header {
  std::size_t size_class;
  Header* next;
};
static_assert(sizeof(Header) == 16, "what follows a header must be aligned to 16 bytes");

class Arena {
 public:
  void* Take(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (begin_ == nullptr) Reserve();
    std::size_t size_class = 0;
    while ((std::size_t{16} << size_class) < bytes) ++size_class;
    Header*& free = free_[size_class];
    Header* header = free;
    if (header != nullptr) {
      free = header->next;
    } else {
      const std::size_t needed = sizeof(Header) + (std::size_t{16} << size_class);
      if (size_class >= kClasses || used_ + needed > kReservedBytes) return nullptr;
      header = reinterpret_cast<Header*>(begin_ + used_);
      used_ += needed;
      header->size_class = size_class;
    }
    return header + 1;
  }
  void Give(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Header* header = static_cast<Header*>(memory) - 1;
    header->next = free_[header->size_class];
    free_[header->size_class] = header;
  }

 private:
  void Reserve() {
    const cudaError_t error = cudaMallocManaged(reinterpret_cast<void**>(&begin_), kReservedBytes);
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "no managed memory: %s\n", cudaGetErrorString(error));
    std::abort();
  }

  std::mutex mutex_;
  char* begin_ = nullptr;
  std::size_t used_ = 0;
  Header* free_[kClasses] = {};
};

Arena& TheArena() {
  alignas(Arena) static char storage[sizeof(Arena)];
  static Arena* const arena = new (storage) Arena;  // never destroyed: others free after it would be
  return *arena;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = TheArena().Take(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) TheArena().Give(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
