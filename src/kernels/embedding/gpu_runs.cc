#include "kernels/embedding/gpu_runs.h"

#include <bit>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int kEntryLanes = 8;  // lanes that share a bag
constexpr int64_t kBagsPerEntryBlock = 256 / kEntryLanes;

struct MakeEntries {
  static constexpr const char* kName = "embedding_make_entries";
  static constexpr int kThreads = 256;
  using Shared = NoShared;
  Runs runs;

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const EmbeddingBags& bags = runs.bags;
    const int64_t bag = BlockIndex() * kBagsPerEntryBlock + ThreadIndex() / kEntryLanes;
    if (bag >= bags.feature_count * bags.batch) return;
    const auto first_key = static_cast<uint64_t>(runs.space.table_key[bags.features[bag / bags.batch].table]);
    for (int64_t i = bags.offsets[bag] + ThreadIndex() % kEntryLanes; i < bags.offsets[bag + 1]; i += kEntryLanes) {
      runs.space.bag[i] = static_cast<uint32_t>(bag);
      runs.space.entries[i] =
          ((first_key + static_cast<uint64_t>(bags.ids[i])) << runs.lookup_bits) | static_cast<uint64_t>(i);
    }
  }
};

PORTOLAN_DEVICE bool StartsRun(const Runs& runs, int64_t entry) {
  return entry < runs.lookups && (entry == 0 || runs.KeyOf(entry) != runs.KeyOf(entry - 1));
}

// counts[tile] = number of runs that start in it.
struct CountRuns {
  static constexpr const char* kName = "embedding_count_runs";
  static constexpr int kThreads = kSortThreads;
  struct Shared {
    BlockSumScratch<uint32_t, kSortThreads> scratch;
  };
  Runs runs;
  uint32_t* counts;

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const int64_t first = BlockIndex() * kTileEntries + ThreadIndex() * kEntriesPerThread;
    uint32_t own = 0;
    for (int k = 0; k < kEntriesPerThread; ++k) own += StartsRun(runs, first + k) ? 1 : 0;
    own = BlockSum(own, shared.scratch);
    if (ThreadIndex() == 0) counts[BlockIndex()] = own;
  }
};

struct WriteStarts {
  static constexpr const char* kName = "embedding_write_starts";
  static constexpr int kThreads = kSortThreads;
  struct Shared {
    BlockSumScratch<uint32_t, kSortThreads> scratch;
  };
  Runs runs;
  const uint32_t* runs_before;  // [tiles]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const int64_t first = BlockIndex() * kTileEntries + ThreadIndex() * kEntriesPerThread;
    uint32_t own = 0;
    for (int k = 0; k < kEntriesPerThread; ++k) own += StartsRun(runs, first + k) ? 1 : 0;
    uint32_t next = runs_before[BlockIndex()] + BlockPrefixSum(own, shared.scratch).before;
    for (int k = 0; k < kEntriesPerThread; ++k) {
      if (StartsRun(runs, first + k)) runs.space.starts[next++] = static_cast<uint32_t>(first + k);
      if (first + k == runs.lookups - 1) runs.space.starts[next] = static_cast<uint32_t>(runs.lookups);
    }
  }
};

// Lists the blocks of the runs that are longer than kHotRowBlock. Their order in the list is that of the atomics; no
// result depends on it.
struct ListHotBlocks {
  static constexpr const char* kName = "embedding_list_hot_blocks";
  static constexpr int kThreads = 256;
  using Shared = NoShared;
  Runs runs;

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const RunSpace& space = runs.space;
    const int64_t run = BlockIndex() * kThreads + ThreadIndex();
    if (run >= *space.run_count) return;
    const uint32_t length = space.starts[run + 1] - space.starts[run];
    if (length <= kHotRowBlock) return;
    const auto blocks = static_cast<uint32_t>((length + kHotRowBlock - 1) / kHotRowBlock);
    const uint32_t slot = AtomicAdd(space.hot_count, blocks);
    for (uint32_t block = 0; block < blocks; ++block) {
      space.hot_blocks[slot + block] = {static_cast<uint32_t>(run), block, slot};
    }
    space.hot_done[slot] = 0;
  }
};

int BitsFor(int64_t count) {
  return count > 2 ? static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))) : 1;
}

// Lays the space out from `memory` on.
RunLayout LayOutRuns(const EmbeddingBags& bags, int64_t lookups, void* memory) {
  RunLayout layout;
  layout.lookups = lookups;
  layout.tiles = CeilDivide(lookups, kTileEntries);
  layout.hot_capacity = 2 * (lookups / kHotRowBlock + 1);
  for (int32_t t = 0; t < bags.table_count; ++t) {
    if (bags.tables[t].dim > layout.max_dim) layout.max_dim = bags.tables[t].dim;
  }
  char* base = static_cast<char*>(memory);
  const auto take = [&](auto*& pointer, int64_t count) {
    constexpr int64_t kAlignment = 64;
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(base + layout.bytes);
    layout.bytes += CeilDivide(count * static_cast<int64_t>(sizeof(*pointer)), kAlignment) * kAlignment;
  };
  RunSpace& space = layout.space;
  take(space.entries, lookups);
  take(space.swap, lookups);
  take(space.bag, lookups);
  take(space.starts, lookups + 1);
  take(space.histogram, kDigits * layout.tiles);
  take(space.run_count, 1);
  take(space.hot_count, 1);
  take(space.hot_blocks, layout.hot_capacity);
  take(space.hot_done, layout.hot_capacity);
  take(space.hot_sums, layout.hot_capacity * layout.max_dim);
  take(space.table_key, bags.table_count + 1);
  return layout;
}

}  // namespace

SortedRuns SortLookups(const EmbeddingBags& bags, void* workspace, device::Stream stream) {
  int64_t lookups = 0;
  CopyToHost(stream, bags.offsets + bags.feature_count * bags.batch, 1, &lookups);
  RunLayout layout = LayOutRuns(bags, lookups, workspace);
  PORTOLAN_CHECK(layout.bytes <= EmbeddingBackwardWorkspaceBytes(bags, lookups), "the workspace is too small");
  RunSpace& space = layout.space;
  std::vector<int64_t> table_key = {0};
  for (int32_t t = 0; t < bags.table_count; ++t) table_key.push_back(table_key.back() + bags.tables[t].row_count);
  const int key_bits = BitsFor(table_key.back());
  const int lookup_bits = BitsFor(lookups);
  PORTOLAN_CHECK(key_bits + lookup_bits <= 64, "row and lookup do not fit in one sort entry");
  PORTOLAN_CHECK(lookups < (int64_t{1} << 32) && bags.feature_count * bags.batch < (int64_t{1} << 32),
                 "too many lookups or bags for one launch");
  const uint32_t zeros[1] = {0};
  CopyToDevice(stream, zeros, 1, space.run_count);
  CopyToDevice(stream, zeros, 1, space.hot_count);
  if (lookups > 0) {
    CopyToDevice(stream, table_key.data(), bags.table_count + 1, space.table_key);
    Launch(stream, CeilDivide(bags.feature_count * bags.batch, kBagsPerEntryBlock),
           MakeEntries{{bags, space, lookups, lookup_bits, layout.max_dim}});
    for (int bit = 0; bit < key_bits; bit += kDigitBits) {
      const int shift = lookup_bits + bit;
      Launch(stream, layout.tiles, CountTileDigits{space.entries, lookups, shift, space.histogram});
      Launch(stream, 1, ExclusiveScan{space.histogram, kDigits * layout.tiles, nullptr});
      Launch(stream, layout.tiles, ScatterByDigit{space.entries, lookups, shift, space.histogram, space.swap});
      std::swap(space.entries, space.swap);
    }
    const Runs runs = {bags, space, lookups, lookup_bits, layout.max_dim};
    Launch(stream, layout.tiles, CountRuns{runs, space.histogram});
    Launch(stream, 1, ExclusiveScan{space.histogram, layout.tiles, space.run_count});
    Launch(stream, layout.tiles, WriteStarts{runs, space.histogram});
    Launch(stream, CeilDivide(lookups, ListHotBlocks::kThreads), ListHotBlocks{runs});
  }
  return {{bags, space, lookups, lookup_bits, layout.max_dim}, layout};
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
