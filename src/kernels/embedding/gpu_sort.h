#pragma once

#include <cstdint>

#include "device/gpu_intrinsics.h"

// A stable radix sort of 64-bit entries by some of their bits, four bits a pass (Satish, Harris, Garland, "Designing
// efficient sorting algorithms for manycore GPUs", IPDPS 2009), and the scan that it and others need.
namespace portolan::kernels::PORTOLAN_BACKEND {

constexpr int kSortThreads = 256;
constexpr int kEntriesPerThread = 4;
constexpr int kTileEntries = kSortThreads * kEntriesPerThread;  // of one block
constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;

// How often each digit occurs in the entries of a block, and where among them.
struct DigitCounters {
  // [digit][work-item]: first the number of the work-item's entries with that digit, then of those sorted before them.
  SharedArray<uint32_t, kDigits * kSortThreads> before;
  BlockSumScratch<uint32_t, kSortThreads> scratch;
};

PORTOLAN_DEVICE inline int DigitOf(uint64_t entry, int shift) {
  return static_cast<int>((entry >> shift) & (kDigits - 1));
}

// Counts the digits of the work-item's own entries, four consecutive ones of the tile.
PORTOLAN_DEVICE inline void CountDigits(const uint64_t* entries, int64_t count, int shift, DigitCounters& counters) {
  for (int digit = 0; digit < kDigits; ++digit) counters.before[digit * kSortThreads + ThreadIndex()] = 0;
  const int64_t first = BlockIndex() * kTileEntries + ThreadIndex() * kEntriesPerThread;
  for (int k = 0; k < kEntriesPerThread; ++k) {
    if (first + k < count) counters.before[DigitOf(entries[first + k], shift) * kSortThreads + ThreadIndex()] += 1;
  }
}

// histogram[digit][tile] = number of entries of the tile with that digit.
struct CountTileDigits {
  static constexpr const char* kName = "sort_histogram";
  static constexpr int kThreads = kSortThreads;
  using Shared = DigitCounters;
  const uint64_t* entries;  // [count]
  int64_t count;
  int shift;
  uint32_t* histogram;  // [kDigits, tiles]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    CountDigits(entries, count, shift, shared);
    SyncBlock();
    // Sixteen work-items a digit: each adds a part, and the group its parts.
    constexpr int kParts = kSortThreads / kDigits;
    const int digit = ThreadIndex() / kParts, part = ThreadIndex() % kParts;
    uint32_t sum = 0;
    for (int i = part; i < kSortThreads; i += kParts) {
      const uint32_t own = shared.before[digit * kSortThreads + i];
      sum += own;
    }
    sum = WaveSum<kParts>(sum);
    if (part == 0) histogram[digit * BlockCount() + BlockIndex()] = sum;
  }
};

// Moves every entry of the tile to its place; `offsets` is the exclusive scan of the histogram.
struct ScatterByDigit {
  static constexpr const char* kName = "sort_scatter";
  static constexpr int kThreads = kSortThreads;
  using Shared = DigitCounters;
  const uint64_t* entries;  // [count]
  int64_t count;
  int shift;
  const uint32_t* offsets;  // [kDigits, tiles]
  uint64_t* sorted;         // [count]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    CountDigits(entries, count, shift, shared);
    SyncBlock();
    // Exclusive scan over (digit, work-item): a work-item takes sixteen neighbouring counters.
    constexpr int kCounters = kDigits;
    uint32_t own = 0;
    for (int i = 0; i < kCounters; ++i) {
      const uint32_t counter = shared.before[ThreadIndex() * kCounters + i];
      own += counter;
    }
    uint32_t running = BlockPrefixSum(own, shared.scratch).before;
    for (int i = 0; i < kCounters; ++i) {
      const uint32_t counter = shared.before[ThreadIndex() * kCounters + i];
      shared.before[ThreadIndex() * kCounters + i] = running;
      running += counter;
    }
    SyncBlock();
    const int64_t first = BlockIndex() * kTileEntries + ThreadIndex() * kEntriesPerThread;
    uint32_t seen[kEntriesPerThread] = {};  // entries of the work-item with the same digit before this one
    for (int k = 1; k < kEntriesPerThread; ++k) {
      for (int earlier = 0; earlier < k; ++earlier) {
        if (first + k < count && DigitOf(entries[first + k], shift) == DigitOf(entries[first + earlier], shift))
          ++seen[k];
      }
    }
    for (int k = 0; k < kEntriesPerThread; ++k) {
      if (first + k >= count) continue;
      const int digit = DigitOf(entries[first + k], shift);
      const uint32_t in_tile = shared.before[digit * kSortThreads + ThreadIndex()];
      const uint32_t digit_start = shared.before[digit * kSortThreads];
      sorted[offsets[digit * BlockCount() + BlockIndex()] + in_tile - digit_start + seen[k]] = entries[first + k];
    }
  }
};

// values = their exclusive prefix sums; *total = their sum. One block.
struct ExclusiveScan {
  static constexpr const char* kName = "exclusive_scan";
  static constexpr int kThreads = kSortThreads;
  static constexpr int kPerThread = 8;
  struct Shared {
    BlockSumScratch<uint32_t, kSortThreads> scratch;
  };
  uint32_t* values;  // [count]
  int64_t count;
  uint32_t* total;  // or null

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    uint32_t carry = 0;
    for (int64_t first = 0; first < count; first += kThreads * kPerThread) {
      uint32_t own[kPerThread];
      uint32_t sum = 0;
      for (int k = 0; k < kPerThread; ++k) {
        const int64_t i = first + ThreadIndex() * kPerThread + k;
        own[k] = i < count ? values[i] : 0;
        sum += own[k];
      }
      const auto prefix = BlockPrefixSum(sum, shared.scratch);
      uint32_t running = carry + prefix.before;
      for (int k = 0; k < kPerThread; ++k) {
        const int64_t i = first + ThreadIndex() * kPerThread + k;
        if (i < count) values[i] = running;
        running += own[k];
      }
      carry += prefix.total;
    }
    if (total != nullptr && ThreadIndex() == 0) *total = carry;
  }
};

}  // namespace portolan::kernels::PORTOLAN_BACKEND
