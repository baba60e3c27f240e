#include "kernels/embedding/cuda_cache.h"

#include "kernels/cuda_rows.h"

namespace portolan::kernels::cuda {
namespace {

// Enough records on their way for the link to the host, on few multiprocessors: on an H200, 4 blocks of 1,024 threads
// and 132 move the same bytes a second (2026-12-01, rows of 512 bytes at random places of 24 GiB).
constexpr int kMoveBlocks = 8, kMoveThreads = 1024;
constexpr int kWordsAtOnce = 4;  // of 16 bytes, a lane

// The table of a row over all tables.
__device__ __forceinline__ int32_t TableOf(const EmbeddingLookups& lookups, int64_t row) {
  int32_t low = 0, high = lookups.table_count;
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (lookups.first_row[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ __forceinline__ uint32_t SetOf(uint32_t row, int64_t sets) {
  uint32_t x = row * 0x9e3779b1u;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  return static_cast<uint32_t>(x % static_cast<uint32_t>(sets));
}

__device__ __forceinline__ uint4* HostRecord(const CachedTable& table, int64_t row) {
  return reinterpret_cast<uint4*>(table.host + row * table.record_bytes);
}

__global__ void __launch_bounds__(256) FindRows(const CacheRequest request) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  bool found = false;
  if (i < request.lookups.lookups) {
    const uint32_t row = request.sorted.rows[i];
    if (i == 0 || request.sorted.rows[i - 1] != row) {
      const int32_t t = TableOf(request.lookups, row);
      const CachedTable& table = request.lookups.cached[t];
      if (table.record_bytes > 0) {
        const uint32_t slot = table.slots[row - request.lookups.first_row[t]];
        if (slot != kNoSlot) {
          const RowCache& cache = request.caches[table.cache];
          const uint32_t idle = (request.now - cache.last_used[slot]) / kUsesHalveAfter;
          cache.uses[slot] = (cache.uses[slot] >> (idle < 31 ? idle : 31)) + 1;
          cache.last_used[slot] = request.now;
          found = true;
        } else {
          request.missing[atomicAdd(request.missing_count, 1u)] = row;
        }
      }
    }
  }
  const unsigned votes = __ballot_sync(0xffffffffu, found);
  if (threadIdx.x % 32 == 0 && votes != 0)
    atomicAdd(&request.counts->found, static_cast<unsigned long long>(__popc(votes)));
}

// Takes a slot of the row's set for `row`, by a whole wave; kNoSlot where all are in use. *leaving: its row, or
// kNoSlot.
__device__ uint32_t TakeSlot(const CacheRequest& request, const RowCache& cache, uint32_t row, uint32_t* leaving) {
  const int lane = threadIdx.x % 32;
  const uint32_t slot = SetOf(row, cache.sets) * kCacheWays + lane;
  for (;;) {
    const uint32_t last = __ldcg(cache.last_used + slot), owner = __ldcg(cache.owners + slot);
    // What is smallest goes: empty slots, then by policy, then by place.
    unsigned long long worth = ~0ull;
    if (last < request.keep_from) {
      uint32_t uses = 0;
      if (request.policy == CachePolicy::kLfu && owner != kNoSlot) {
        const uint32_t idle = (request.now - last) / kUsesHalveAfter;
        const uint32_t counted = __ldcg(cache.uses + slot);
        uses = (counted < 0xffffffu ? counted : 0xffffffu) >> (idle < 31 ? idle : 31);
      }
      const unsigned long long order = owner == kNoSlot ? 0 : (static_cast<unsigned long long>(uses) << 32 | last) + 1;
      worth = order << 5 | static_cast<unsigned long long>(lane);
    }
    unsigned long long least = worth;
    for (int distance = 16; distance > 0; distance /= 2) {
      const unsigned long long other = __shfl_xor_sync(0xffffffffu, least, distance);
      least = other < least ? other : least;
    }
    if (least == ~0ull) return kNoSlot;
    const int winner = static_cast<int>(least & 31);
    bool taken = false;
    if (lane == winner) taken = atomicCAS(cache.last_used + slot, last, request.now) == last;
    if (__shfl_sync(0xffffffffu, taken, winner)) {
      *leaving = __shfl_sync(0xffffffffu, owner, winner);
      return __shfl_sync(0xffffffffu, slot, winner);
    }
  }
}

// A wave moves a record at a time. Where `leaving` is null nothing is written back.
__device__ __forceinline__ void MoveRecord(int64_t bytes, const uint4* arriving, uint4* slot, uint4* leaving) {
  const int words = static_cast<int>(bytes / 16);
  for (int first = threadIdx.x % 32; first < words; first += 32 * kWordsAtOnce) {
    uint4 in[kWordsAtOnce], out[kWordsAtOnce];
#pragma unroll
    for (int k = 0; k < kWordsAtOnce; ++k) {
      if (first + 32 * k < words) in[k] = __ldcs(arriving + first + 32 * k);
    }
    if (leaving != nullptr) {
#pragma unroll
      for (int k = 0; k < kWordsAtOnce; ++k) {
        if (first + 32 * k < words) out[k] = slot[first + 32 * k];
      }
#pragma unroll
      for (int k = 0; k < kWordsAtOnce; ++k) {
        if (first + 32 * k < words) __stcs(leaving + first + 32 * k, out[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kWordsAtOnce; ++k) {
      if (first + 32 * k < words) slot[first + 32 * k] = in[k];
    }
  }
}

__global__ void __launch_bounds__(kMoveThreads) LoadRows(const CacheRequest request) {
  const int lane = threadIdx.x % 32;
  const uint32_t count = *request.missing_count;
  const uint32_t waves = gridDim.x * (kMoveThreads / 32);
  unsigned long long loaded = 0, written_back = 0, bypassed = 0;
  for (uint32_t i = blockIdx.x * (kMoveThreads / 32) + threadIdx.x / 32; i < count; i += waves) {
    const uint32_t row = request.missing[i];
    const int32_t t = TableOf(request.lookups, row);
    const CachedTable& table = request.lookups.cached[t];
    const RowCache& cache = request.caches[table.cache];
    uint32_t leaving = kNoSlot;
    const uint32_t slot = TakeSlot(request, cache, row, &leaving);
    if (slot == kNoSlot) {
      ++bypassed;
      continue;
    }
    const int64_t own_row = static_cast<int64_t>(row) - request.lookups.first_row[t];
    uint4* left = nullptr;
    if (leaving != kNoSlot) {
      const int32_t from = TableOf(request.lookups, leaving);
      const CachedTable& left_table = request.lookups.cached[from];
      const int64_t left_row = static_cast<int64_t>(leaving) - request.lookups.first_row[from];
      left = HostRecord(left_table, left_row);
      if (lane == 0) left_table.slots[left_row] = kNoSlot;
      ++written_back;
    }
    MoveRecord(cache.record_bytes, HostRecord(table, own_row),
               reinterpret_cast<uint4*>(cache.records + slot * cache.record_bytes), left);
    if (lane == 0) {
      cache.owners[slot] = row;
      cache.uses[slot] = 1;
      table.slots[own_row] = slot;
    }
    ++loaded;
  }
  if (lane != 0) return;
  if (loaded > 0) atomicAdd(&request.counts->loaded, loaded);
  if (written_back > 0) atomicAdd(&request.counts->written_back, written_back);
  if (bypassed > 0) atomicAdd(&request.counts->bypassed, bypassed);
}

constexpr int kBagLanes = 8;  // lanes that share a bag
__global__ void __launch_bounds__(256) Place(const EmbeddingLookups bags, int64_t* places) {
  const int64_t bag = blockIdx.x * int64_t{256 / kBagLanes} + threadIdx.x / kBagLanes;
  if (bag >= bags.feature_count * bags.batch) return;
  const CachedTable table = bags.cached[bags.features[bag / bags.batch].table];
  const int64_t end = bags.offsets[bag + 1];
  const int64_t host = table.record_bytes > 0 ? (table.host - table.records) / table.record_bytes : 0;
  for (int64_t i = bags.offsets[bag] + threadIdx.x % kBagLanes; i < end; i += kBagLanes) {
    const int64_t id = bags.ids[i];
    int64_t place = id;
    if (table.record_bytes > 0) {
      const uint32_t slot = table.slots[id];
      place = slot == kNoSlot ? host + id : static_cast<int64_t>(slot);
    }
    places[i] = place;
  }
}

__global__ void __launch_bounds__(kMoveThreads) WriteBack(const RowCache cache, const EmbeddingLookups tables) {
  const int64_t waves = gridDim.x * int64_t{kMoveThreads / 32};
  for (int64_t slot = blockIdx.x * int64_t{kMoveThreads / 32} + threadIdx.x / 32; slot < cache.sets * kCacheWays;
       slot += waves) {
    const uint32_t row = cache.owners[slot];
    if (row == kNoSlot) continue;
    const int32_t t = TableOf(tables, row);
    uint4* to = HostRecord(tables.cached[t], static_cast<int64_t>(row) - tables.first_row[t]);
    const auto* from = reinterpret_cast<const uint4*>(cache.records + slot * cache.record_bytes);
    for (int word = threadIdx.x % 32; word < cache.record_bytes / 16; word += 32) __stcs(to + word, from[word]);
  }
}

}  // namespace

void FindAndLoadRows(const CacheRequest& request, device::Stream stream) {
  using device::cuda::CheckCuda;
  CheckCuda(cudaMemsetAsync(request.counts, 0, sizeof(CacheCounts), Native(stream)), "cache counters");
  CheckCuda(cudaMemsetAsync(request.missing_count, 0, sizeof(uint32_t), Native(stream)), "cache counters");
  if (request.lookups.lookups <= 0) return;
  FindRows<<<static_cast<unsigned>(DivideUp(request.lookups.lookups, 256)), 256, 0, Native(stream)>>>(request);
  CheckLaunch("finding rows in the cache");
  LoadRows<<<kMoveBlocks, kMoveThreads, 0, Native(stream)>>>(request);
  CheckLaunch("loading rows into the cache");
}

void PlaceLookups(const EmbeddingLookups& lookups, int64_t* places, device::Stream stream) {
  const int64_t bags = lookups.feature_count * lookups.batch;
  if (bags <= 0 || lookups.lookups <= 0) return;
  Place<<<static_cast<unsigned>(DivideUp(bags, 256 / kBagLanes)), 256, 0, Native(stream)>>>(lookups, places);
  CheckLaunch("places of lookups");
}

void WriteBackRows(const RowCache& cache, const EmbeddingLookups& tables, device::Stream stream) {
  WriteBack<<<4 * kMoveBlocks, kMoveThreads, 0, Native(stream)>>>(cache, tables);
  CheckLaunch("writing the cache back");
}

}  // namespace portolan::kernels::cuda
