#pragma once

#include <cstdint>

#include "kernels/cuda_kernels.h"

// The backward pass over sorted lookups. They are cut in chunks of kChunk, a group of lanes each, whatever the rows: a
// group sums the lookups of each row of its chunk and updates the rows that lie in it as a whole. Of a row that goes on
// into the next chunk, or began in the one before, only the sum goes to the next level, where such sums are the
// entries, two places a chunk. So the work is as even for one row with a million lookups as for a million rows, nothing
// is added by atomics, and the order of the sums depends on the number of lookups alone.
namespace portolan::kernels::cuda {

constexpr int kChunk = 64;
// Of later levels, which are short: how long one chunk takes is then what counts. On an H200 with 14 million lookups by
// Zipf's law (2026-12-01), 64 took 0.06 ms for each level after the second.
constexpr int kLaterChunk = 32;
constexpr int kMostLevels = 10;           // 64 * 16^8 lookups and more
constexpr uint32_t kNoSum = 0x80000000u;  // the place belongs to the row, but holds no sum
constexpr uint32_t kNoRow = 0xffffffffu;  // the place belongs to no row
constexpr uint32_t kRowMask = ~kNoSum;

struct Level {
  int64_t count = 0;  // entries
  int64_t chunks = 0;
  double* squares = nullptr;          // [chunks], in the squares of all levels
  uint32_t* next_rows = nullptr;      // [2 chunks]
  uint32_t* next_features = nullptr;  // [2 chunks]: a feature that reads the row's table
  float* next_sums = nullptr;         // [2 chunks, max_dim]
};

// Where things lie in the workspace.
struct SortSpace {
  uint32_t* rows[2] = {};      // [lookups]
  uint32_t* places[2] = {};    // [lookups]: feature and sample, or the lookup where lookups have weights
  uint32_t* bag_of = nullptr;  // [lookups]: feature and sample of each lookup, then
  char* temporary = nullptr;
  int64_t temporary_bytes = 0;
  double* squares = nullptr;  // [square_count]: of each chunk of each level
  int64_t square_count = 0;
  Level level[kMostLevels];
  int levels = 0;
  int64_t bytes = 0;
};
SortSpace LayOutSort(int64_t lookups, int32_t max_dim, void* memory);
// Low bits of a place that hold the sample; the feature is above.
int SampleBits(int64_t batch);

}  // namespace portolan::kernels::cuda
