#pragma once

#include <omp.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "kernels/embedding/embedding.h"

// The lookups of a batch sorted by row, for both ways to apply their gradients. Included by cpu_*.cc of this folder
// only: each compiles its own copy, with its own vector instructions.
namespace portolan::kernels {
namespace {

constexpr int kDigitBits = 11;  // 2,048 counters of 4 bytes a chunk stay in the first-level cache
constexpr int64_t kDigits = int64_t{1} << kDigitBits;
constexpr int64_t kMaxChunks = 64;  // of the sort; threads beyond it idle there
constexpr int64_t kAlignment = 64;
constexpr int64_t kCacheLine = 64;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int32_t MaxDim(const EmbeddingBags& bags) {
  int32_t dim = 1;
  for (int32_t t = 0; t < bags.table_count; ++t) dim = std::max(dim, bags.tables[t].dim);
  return dim;
}

// The parts of the workspace. An entry is key << lookup_bits | lookup, key = first key of its table + row.
struct Workspace {
  uint64_t* entries;   // [lookups]
  uint64_t* swap;      // [lookups]
  uint32_t* bag;       // [lookups] feature * batch + sample
  int64_t* starts;     // [lookups + 1] first entry of each run
  int64_t* hot;        // [lookups / kHotRowBlock + 1] runs longer than kHotRowBlock
  int64_t* counters;   // [kMaxChunks, kDigits]
  float* sums;         // [blocks, max dim] partial sums of hot rows
  int64_t* table_key;  // [tables + 1]
};

int64_t Carve(const EmbeddingBags& bags, int64_t lookups, void* memory, Workspace* space) {
  char* base = static_cast<char*>(memory);
  int64_t used = 0;
  const auto take = [&](auto*& pointer, int64_t count) {
    if (base != nullptr) pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(base + used);
    used += Aligned(count * static_cast<int64_t>(sizeof(*pointer)));
  };
  take(space->entries, lookups);
  take(space->swap, lookups);
  take(space->bag, lookups);
  take(space->starts, lookups + 1);
  take(space->hot, lookups / kHotRowBlock + 1);
  take(space->counters, kMaxChunks * kDigits);
  take(space->sums, 2 * (lookups / kHotRowBlock + 1) * MaxDim(bags));  // a hot row has at most one block not full
  take(space->table_key, bags.table_count + 1);
  return used;
}

struct Runs {
  Workspace space = {};
  int64_t lookups = 0;
  int64_t count = 0;  // distinct rows
  int64_t hot_count = 0;
  int lookup_bits = 1;

  uint64_t Key(int64_t entry) const { return space.entries[entry] >> lookup_bits; }
  int64_t Lookup(int64_t entry) const {
    return static_cast<int64_t>(space.entries[entry] & ((uint64_t{1} << lookup_bits) - 1));
  }
};

int64_t Chunks(int64_t lookups) {
  constexpr int64_t kMinPerChunk = 4096;  // below, starting threads costs more than it saves
  return std::clamp<int64_t>(std::min<int64_t>(lookups / kMinPerChunk, omp_get_max_threads()), 1, kMaxChunks);
}

// Stable: entries of equal keys stay in the order of their lookups, so the result is the same for any chunk count.
void RadixSort(Runs* runs, int key_bits) {
  const int64_t n = runs->lookups;
  const int64_t chunks = Chunks(n);
  const int passes = std::max(1, (key_bits + kDigitBits - 1) / kDigitBits);
  const int bits = (key_bits + passes - 1) / passes;
  const auto digits = int64_t{1} << bits;
  Workspace& space = runs->space;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = runs->lookup_bits + pass * bits;
    const auto mask = static_cast<uint64_t>(digits - 1);
    const uint64_t* from = space.entries;
    uint64_t* to = space.swap;
    int64_t* counters = space.counters;
#pragma omp parallel for schedule(static, 1) if (chunks > 1)
    for (int64_t c = 0; c < chunks; ++c) {
      int64_t* count = counters + c * kDigits;
      std::fill_n(count, digits, int64_t{0});
      for (int64_t i = n * c / chunks; i < n * (c + 1) / chunks; ++i) ++count[(from[i] >> shift) & mask];
    }
    int64_t place = 0;
    for (int64_t digit = 0; digit < digits; ++digit) {
      for (int64_t c = 0; c < chunks; ++c) {
        int64_t& count = counters[c * kDigits + digit];
        const int64_t first = place;
        place += count;
        count = first;
      }
    }
#pragma omp parallel for schedule(static, 1) if (chunks > 1)
    for (int64_t c = 0; c < chunks; ++c) {
      int64_t* next = counters + c * kDigits;
      for (int64_t i = n * c / chunks; i < n * (c + 1) / chunks; ++i) to[next[(from[i] >> shift) & mask]++] = from[i];
    }
    std::swap(space.entries, space.swap);
  }
}

void FindRuns(Runs* runs) {
  const int64_t n = runs->lookups;
  const int64_t chunks = Chunks(n);
  int64_t first[kMaxChunks + 1] = {};
  const auto starts_run = [&](int64_t i) { return i == 0 || runs->Key(i) != runs->Key(i - 1); };
#pragma omp parallel for schedule(static, 1) if (chunks > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    int64_t count = 0;
    for (int64_t i = n * c / chunks; i < n * (c + 1) / chunks; ++i) count += starts_run(i) ? 1 : 0;
    first[c + 1] = count;
  }
  for (int64_t c = 0; c < chunks; ++c) first[c + 1] += first[c];
#pragma omp parallel for schedule(static, 1) if (chunks > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    int64_t next = first[c];
    for (int64_t i = n * c / chunks; i < n * (c + 1) / chunks; ++i) {
      if (starts_run(i)) runs->space.starts[next++] = i;
    }
  }
  runs->count = first[chunks];
  runs->space.starts[runs->count] = n;
  for (int64_t run = 0; run < runs->count; ++run) {
    if (runs->space.starts[run + 1] - runs->space.starts[run] > kHotRowBlock) runs->space.hot[runs->hot_count++] = run;
  }
}

Runs SortLookups(const EmbeddingBags& bags, void* workspace) {
  Runs runs;
  runs.lookups = bags.offsets[bags.feature_count * bags.batch];
  Carve(bags, runs.lookups, workspace, &runs.space);
  int64_t* table_key = runs.space.table_key;
  table_key[0] = 0;
  for (int32_t t = 0; t < bags.table_count; ++t) table_key[t + 1] = table_key[t] + bags.tables[t].row_count;
  const auto bits = [](int64_t count) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(count - 1, 1))));
  };
  const int key_bits = bits(table_key[bags.table_count]);
  runs.lookup_bits = bits(runs.lookups);
  PORTOLAN_CHECK(key_bits + runs.lookup_bits <= 64, "row and lookup do not fit in one sort entry");
  PORTOLAN_CHECK(bags.feature_count * bags.batch < (int64_t{1} << 32), "too many bags for one launch");
#pragma omp parallel for schedule(static) if (runs.lookups > 4096)
  for (int64_t bag = 0; bag < bags.feature_count * bags.batch; ++bag) {
    const int64_t first_key = table_key[bags.features[bag / bags.batch].table];
    for (int64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; ++i) {
      runs.space.bag[i] = static_cast<uint32_t>(bag);
      runs.space.entries[i] =
          (static_cast<uint64_t>(first_key + bags.ids[i]) << runs.lookup_bits) | static_cast<uint64_t>(i);
    }
  }
  if (runs.lookups == 0) return runs;
  RadixSort(&runs, key_bits);
  FindRuns(&runs);
  return runs;
}

}  // namespace
}  // namespace portolan::kernels
