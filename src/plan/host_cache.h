#pragma once

#include <vector>

#include "model/model.h"
#include "units/quantity.h"

namespace portolan {

// One table shard of a rank whose tables live in host memory behind a cache on the device.
struct CachedShard {
  double rows = 0;           // of the shard
  double row_bytes = 0;      // weights and optimizer state
  double lookups = 0;        // of the shard in one step
  double zipf_exponent = 0;  // skew of the lookups
};

struct HostCacheTraffic {
  double missed_rows = 0;  // distinct rows fetched from the host in one step; as many are written back
  Bytes missed_bytes;      // of them, with their optimizer state
  Bytes host_bytes;        // everything that lives in host memory
  double hit_share = 1;    // of the lookups
};

// The best static cache of `capacity` bytes: the rows with the most lookups a byte, over all shards. With P(rank i of
// shard t) = i^-s / H, shard t keeps its first c_t rows, where lookups_t c_t^-s / (H_t row_bytes_t) is one value for
// all shards (bisection); uniform shards share what is left by their lookups a byte. A real LRU or LFU cache misses
// more: LRU by the one-off rows that pass through it (docs/cost-memory.md gives no measured factor). Missed rows of a
// shard = expected distinct rows of its lookups less those among its cached rows.
HostCacheTraffic MeasureHostCache(const std::vector<CachedShard>& shards, Bytes capacity);

}  // namespace portolan
