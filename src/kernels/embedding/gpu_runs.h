#pragma once

#include <cstdint>

#include "device/gpu_intrinsics.h"
#include "kernels/embedding/embedding.h"
#include "kernels/embedding/gpu_sort.h"

// From the lookups of a batch to runs: the lookups of one row next to each other, in their order.
namespace portolan::kernels::PORTOLAN_BACKEND {

// One block of kHotRowBlock lookups of a hot row.
struct HotBlock {
  uint32_t run;
  uint32_t block;       // 0 is the first of the run
  uint32_t first_slot;  // slot of block 0: where the run's sums and its counter are
};

// Where things lie in the caller's workspace.
struct RunSpace {
  uint64_t* entries;     // [lookups]; the row's key above, the lookup in the low bits
  uint64_t* swap;        // [lookups]
  uint32_t* bag;         // [lookups]: feature * batch + sample
  uint32_t* starts;      // [lookups + 1]: first entry of each run; the last is the number of lookups
  uint32_t* histogram;   // [kDigits, tiles]
  uint32_t* run_count;   // [1]
  uint32_t* hot_count;   // [1], of hot_blocks
  HotBlock* hot_blocks;  // [hot_capacity]
  uint32_t* hot_done;    // [hot_capacity]: blocks of the run that starts here that are summed
  float* hot_sums;       // [hot_capacity, max_dim]
  int64_t* table_key;    // [tables + 1]: key of the first row of each table
};

struct RunLayout {
  RunSpace space = {};
  int64_t lookups = 0;
  int64_t tiles = 0;
  int64_t hot_capacity = 0;  // a hot row has at most one block that is not full
  int32_t max_dim = 1;
  int64_t bytes = 0;
};

// What the passes over runs need to know.
struct Runs {
  EmbeddingBags bags;
  RunSpace space;
  int64_t lookups;
  int lookup_bits;
  int32_t max_dim;

  PORTOLAN_DEVICE uint64_t KeyOf(int64_t entry) const { return space.entries[entry] >> lookup_bits; }
  PORTOLAN_DEVICE int64_t LookupOf(int64_t entry) const {
    return static_cast<int64_t>(space.entries[entry] & ((uint64_t{1} << lookup_bits) - 1));
  }
};

struct SortedRuns {
  Runs runs;
  RunLayout layout;
};
// Sorts the lookups by table and row and finds the runs. `workspace`: EmbeddingBackwardWorkspaceBytes bytes, of which
// less is used.
SortedRuns SortLookups(const EmbeddingBags& bags, void* workspace, device::Stream stream);

}  // namespace portolan::kernels::PORTOLAN_BACKEND
