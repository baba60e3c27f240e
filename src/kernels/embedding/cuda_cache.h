#pragma once

#include <cstdint>

#include "kernels/cuda_kernels.h"

// Tables in host memory behind a cache on the device. A record is a row and its optimizer state, one after the other,
// so that a miss is one transfer each way. Records of one size share a cache of sets of kCacheWays slots; a row belongs
// to one set, and a directory of one number a row says in which slot it is, if in any. The newest values of a row are
// in its slot where it has one, else in host memory; kernels reach both, so a batch may have more rows than the cache:
// those without a slot are read and updated in place, slowly.
//
// Which slot a row gets depends on the order of the device's threads, the values of a row do not.
namespace portolan::kernels::cuda {

constexpr int kCacheWays = 32;
constexpr uint32_t kNoSlot = 0xffffffffu;
// Uses of a row count half after so many batches without it.
constexpr uint32_t kUsesHalveAfter = 256;

// Which row of a set leaves: the one used in the fewest batches (of these the one not used for longest), or the one not
// used for longest.
enum class CachePolicy : int32_t { kLfu, kLru };

// Records of one size.
struct RowCache {
  char* records = nullptr;        // [sets, kCacheWays] of record_bytes
  uint32_t* owners = nullptr;     // [sets, kCacheWays]: row over all tables, or kNoSlot
  uint32_t* last_used = nullptr;  // batch, counted from 1; 0: never
  uint32_t* uses = nullptr;
  int64_t sets = 0;
  int64_t record_bytes = 0;  // a multiple of 16
};

struct CacheCounts {
  unsigned long long found = 0;         // rows of batches that had a slot
  unsigned long long loaded = 0;        // that got one
  unsigned long long written_back = 0;  // rows that left one
  unsigned long long bypassed = 0;      // rows of batches that got none: all slots of their set were in use
};

// What is looked for in one go. All pointers to device memory.
struct CacheRequest {
  EmbeddingLookups lookups;  // with cached
  SortedLookups sorted;
  const RowCache* caches = nullptr;  // [cache_count]
  int32_t cache_count = 0;
  uint32_t now = 0;        // number of this batch
  uint32_t keep_from = 0;  // slots used by this batch or a later one keep their rows
  CachePolicy policy = CachePolicy::kLfu;
  uint32_t* missing = nullptr;  // [lookups]: scratch
  uint32_t* missing_count = nullptr;
  CacheCounts* counts = nullptr;  // of this request: set to zero first
};

// Gives the rows of a batch slots: rows without one take those of rows that leave, which are written back. Blocks: of
// the kernel that moves records; few, so that other kernels run beside it.
void FindAndLoadRows(const CacheRequest& request, device::Stream stream);
// places[i] = where lookup i is, as an id for the forward pass: a slot, a row of the table, or a place in host memory.
void PlaceLookups(const EmbeddingLookups& lookups, int64_t* places, device::Stream stream);
// Writes every record of a cache back; it keeps them too.
void WriteBackRows(const RowCache& cache, const EmbeddingLookups& tables, device::Stream stream);

}  // namespace portolan::kernels::cuda
