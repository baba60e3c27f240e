#pragma once

// Groups of work-items: the grid, the block, tiles of a wave, the lanes that are together.

#include "cuda_runtime.h"

namespace cooperative_groups {

namespace internal {

inline unsigned ThreadRank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
PORTOLAN_INLINE int CountBelow(unsigned long long mask, unsigned lane) {
  return __builtin_popcountll(mask & ((1ull << lane) - 1));
}
// The lane that is the `rank`-th of the mask.
inline unsigned LaneOf(unsigned long long mask, unsigned rank) {
  for (; rank > 0 && mask != 0; --rank) mask &= mask - 1;
  return mask == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(mask));
}

}  // namespace internal

// Lanes of one wave, in the order of their numbers.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned long long mask) : mask_(mask) {}
  unsigned long long size() const { return static_cast<unsigned long long>(__builtin_popcountll(mask_)); }
  unsigned long long num_threads() const { return size(); }
  unsigned thread_rank() const { return static_cast<unsigned>(internal::CountBelow(mask_, portolan::gpu::Lane())); }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
  PORTOLAN_INLINE void sync() const { portolan::gpu::SyncWave(portolan::gpu::Named(mask_)); }
  template <typename T>
  PORTOLAN_INLINE T shfl(T value, unsigned rank) const {
    return Read("shfl", value, rank % static_cast<unsigned>(size()));
  }
  template <typename T>
  PORTOLAN_INLINE T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return Read("shfl_down", value, rank + delta < size() ? rank + delta : rank);
  }
  template <typename T>
  PORTOLAN_INLINE T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return Read("shfl_up", value, rank >= delta ? rank - delta : rank);
  }
  template <typename T>
  PORTOLAN_INLINE T shfl_xor(T value, unsigned bits) const {
    const unsigned rank = thread_rank() ^ bits;
    return Read("shfl_xor", value, rank < size() ? rank : thread_rank());
  }
  PORTOLAN_INLINE unsigned long long ballot(int vote) const {
    const auto all = portolan::gpu::Exchange("ballot", portolan::gpu::Named(mask_), vote != 0);
    unsigned long long result = 0;
    unsigned rank = 0;
    for (unsigned long long rest = mask_; rest != 0; rest &= rest - 1, ++rank) {
      const int lane = __builtin_ctzll(rest);
      if (((all.active >> lane) & 1) != 0 && all.value[lane] != 0) result |= 1ull << rank;
    }
    return result;
  }
  PORTOLAN_INLINE int any(int vote) const { return ballot(vote) != 0; }
  PORTOLAN_INLINE int all(int vote) const {
    return static_cast<unsigned long long>(__builtin_popcountll(ballot(vote))) == size();
  }
  template <typename T>
  PORTOLAN_INLINE unsigned long long match_any(T value) const {
    const auto all = portolan::gpu::Exchange("match_any", portolan::gpu::Named(mask_), portolan::gpu::ToBits(value));
    unsigned long long result = 0;
    unsigned rank = 0;
    for (unsigned long long rest = mask_; rest != 0; rest &= rest - 1, ++rank) {
      if (all.value[__builtin_ctzll(rest)] == portolan::gpu::ToBits(value)) result |= 1ull << rank;
    }
    return result;
  }
  unsigned long long mask() const { return mask_; }

 protected:
  template <typename T>
  PORTOLAN_INLINE T Read(const char* operation, T value, unsigned rank) const {
    return portolan::gpu::ReadLane(operation, mask_, value, internal::LaneOf(mask_, rank));
  }
  unsigned long long mask_;
};

struct thread_group_base {};

// kSize consecutive lanes.
template <unsigned kSize, typename Parent = void>
class thread_block_tile : public coalesced_group {
 public:
  static_assert(kSize <= PORTOLAN_GPU_WAVE, "a tile is no larger than a wave");
  thread_block_tile() : coalesced_group(MaskHere()) {}
  explicit thread_block_tile(unsigned long long mask) : coalesced_group(mask) {}
  template <typename Other>  // the same tile without its block's type
  thread_block_tile(const thread_block_tile<kSize, Other>& other) : coalesced_group(other.mask()) {}
  static constexpr unsigned long long size() { return kSize; }
  static constexpr unsigned long long num_threads() { return kSize; }
  unsigned thread_rank() const { return portolan::gpu::Lane() % kSize; }
  unsigned meta_group_rank() const { return internal::ThreadRank() / kSize; }
  unsigned meta_group_size() const { return (blockDim.x * blockDim.y * blockDim.z + kSize - 1) / kSize; }

 private:
  static unsigned long long MaskHere() {
    const unsigned first = portolan::gpu::Lane() / kSize * kSize;
    unsigned long long lanes = kSize >= 64 ? ~0ull : (1ull << (kSize % 64)) - 1;
    // Lanes that the block has not.
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    const unsigned begin = internal::ThreadRank() / kSize * kSize;
    if (begin + kSize > threads) lanes &= (1ull << (threads - begin)) - 1;
    return lanes << first;
  }
};

class thread_block {
 public:
  PORTOLAN_INLINE void sync() const { portolan::gpu::SyncBlock(0); }
  PORTOLAN_INLINE static void sync_block() { portolan::gpu::SyncBlock(0); }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return internal::ThreadRank(); }
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};

class grid_group {
 public:
  bool is_valid() const { return true; }
  PORTOLAN_INLINE void sync() const { portolan::gpu::SyncGrid(); }
  unsigned long long size() const {
    return uint64_t{gridDim.x} * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z;
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long block_rank() const {
    return blockIdx.x + gridDim.x * (blockIdx.y + uint64_t{gridDim.y} * blockIdx.z);
  }
  unsigned long long num_blocks() const { return uint64_t{gridDim.x} * gridDim.y * gridDim.z; }
  unsigned long long thread_rank() const {
    return block_rank() * blockDim.x * blockDim.y * blockDim.z + internal::ThreadRank();
  }
  dim3 group_dim() const { return gridDim; }
};

// Any of them, of a size known when the program runs.
class thread_group {
 public:
  thread_group(const thread_block&) : block_(true), group_(0) {}
  thread_group(const coalesced_group& group) : block_(false), group_(group) {}
  template <unsigned kSize, typename P>
  thread_group(const thread_block_tile<kSize, P>& tile) : block_(false), group_(tile.mask()) {}
  PORTOLAN_INLINE void sync() const {
    if (block_) {
      portolan::gpu::SyncBlock(0);
    } else {
      group_.sync();
    }
  }
  unsigned size() const { return block_ ? thread_block().size() : static_cast<unsigned>(group_.size()); }
  unsigned thread_rank() const { return block_ ? internal::ThreadRank() : group_.thread_rank(); }
  template <typename T>
  PORTOLAN_INLINE T shfl(T value, unsigned rank) const {
    return group_.shfl(value, rank);
  }
  template <typename T>
  PORTOLAN_INLINE T shfl_down(T value, unsigned delta) const {
    return group_.shfl_down(value, delta);
  }

 private:
  bool block_;
  coalesced_group group_;
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
PORTOLAN_INLINE coalesced_group coalesced_threads() {
  return coalesced_group(portolan::gpu::Exchange("coalesced_threads", 0, 0).active);
}
template <unsigned kSize, typename Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}
inline coalesced_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned first = portolan::gpu::Lane() / size * size;
  return coalesced_group((size >= 64 ? ~0ull : (1ull << size) - 1) << first);
}
inline coalesced_group tiled_partition(const thread_block& block, unsigned size) {
  return tiled_partition(thread_group(block), size);
}
template <typename Group>
PORTOLAN_INLINE void sync(const Group& group) {
  group.sync();
}
PORTOLAN_INLINE coalesced_group binary_partition(const coalesced_group& group, bool side) {
  const auto all = portolan::gpu::Exchange("binary_partition", portolan::gpu::Named(group.mask()), side);
  unsigned long long same = 0;
  for (unsigned long long rest = group.mask(); rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    if ((all.value[lane] != 0) == side) same |= 1ull << lane;
  }
  return coalesced_group(same);
}

template <typename T = void>
struct plus {
  template <typename V>
  V operator()(V a, V b) const {
    return a + b;
  }
};
template <typename T = void>
struct less {
  template <typename V>
  V operator()(V a, V b) const {
    return b < a ? b : a;
  }
};
template <typename T = void>
struct greater {
  template <typename V>
  V operator()(V a, V b) const {
    return a < b ? b : a;
  }
};
template <typename T = void>
struct bit_and {
  template <typename V>
  V operator()(V a, V b) const {
    return a & b;
  }
};
template <typename T = void>
struct bit_or {
  template <typename V>
  V operator()(V a, V b) const {
    return a | b;
  }
};
template <typename T = void>
struct bit_xor {
  template <typename V>
  V operator()(V a, V b) const {
    return a ^ b;
  }
};

// Over the group's lanes, in the order of their numbers; the same in all.
template <typename Group, typename T, typename Operator>
PORTOLAN_INLINE T reduce(const Group& group, T value, Operator op) {
  T result = value;
  const unsigned own = group.thread_rank();
  for (unsigned rank = 0; rank < group.size(); ++rank) {
    const T other = group.shfl(value, rank);
    result = rank == 0 ? other : op(result, other);
  }
  static_cast<void>(own);
  return result;
}
template <typename Group, typename T, typename Operator>
PORTOLAN_INLINE T inclusive_scan(const Group& group, T value, Operator op) {
  T result = value;
  const unsigned own = group.thread_rank();
  for (unsigned rank = 0; rank < group.size(); ++rank) {
    const T other = group.shfl(value, rank);
    if (rank < own) result = rank == 0 ? other : op(result, other);
    if (rank == own) result = rank == 0 ? value : op(result, value);
  }
  return result;
}
template <typename Group, typename T>
PORTOLAN_INLINE T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
template <typename Group, typename T>
PORTOLAN_INLINE T exclusive_scan(const Group& group, T value) {
  const T upto = inclusive_scan(group, value, plus<T>());
  return upto - value;
}
template <typename Group, typename T>
PORTOLAN_INLINE void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
  for (size_t i = group.thread_rank(); i < bytes / sizeof(T); i += group.size()) to[i] = from[i];
}
template <typename Group>
PORTOLAN_INLINE void wait(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
