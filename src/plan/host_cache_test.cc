#include "plan/host_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace portolan {
namespace {

TEST(HostCache, EverythingCachedMissesNothing) {
  const HostCacheTraffic traffic = MeasureHostCache({{1000, 512, 5000, 1.0}}, Bytes(1000 * 512));
  EXPECT_EQ(traffic.missed_rows, 0);
  EXPECT_EQ(traffic.host_bytes, Bytes(512000));
  EXPECT_EQ(traffic.hit_share, 1);
}

// Half of a uniform table cached: half of the distinct rows are missed. 1,000 rows, 100 lookups: 1000 (1 - 0.999^100) =
// 95.2 distinct; cached half: 50 lookups of 500 rows, 500 (1 - 0.998^50) = 47.6.
TEST(HostCache, HalfOfAUniformTable) {
  const HostCacheTraffic traffic = MeasureHostCache({{1000, 100, 100, 0}}, Bytes(50000));
  EXPECT_NEAR(traffic.missed_rows, 47.6, 0.3);
  EXPECT_NEAR(traffic.hit_share, 0.5, 1e-6);
  EXPECT_NEAR(traffic.missed_bytes.value, 4760, 30);
}

// Zipf 1 over 1e6 rows: the first 1e4 of them take (ln 1e4 + 0.577) / (ln 1e6 + 0.577) = 0.68 of the lookups.
TEST(HostCache, SkewIsCached) {
  const HostCacheTraffic traffic = MeasureHostCache({{1e6, 100, 1e5, 1.0}}, Bytes(1e6));
  EXPECT_NEAR(traffic.hit_share, 0.68, 0.02);
}

// Against the exact optimum by enumeration: of two small Zipf tables, the 60 rows with the most lookups a byte.
TEST(HostCache, KeepsTheRowsWithMostLookupsAByte) {
  const CachedShard a{200, 100, 1000, 1.2}, b{300, 400, 3000, 0.8};
  struct Row {
    double density, bytes, lookups;
  };
  std::vector<Row> rows;
  for (const CachedShard& shard : {a, b}) {
    double sum = 0;
    for (int i = 1; i <= shard.rows; ++i) sum += std::pow(i, -shard.zipf_exponent);
    for (int i = 1; i <= shard.rows; ++i) {
      const double lookups = shard.lookups * std::pow(i, -shard.zipf_exponent) / sum;
      rows.push_back({lookups / shard.row_bytes, shard.row_bytes, lookups});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) { return x.density > y.density; });
  const double capacity = 20000;
  double used = 0, hits = 0;
  for (const Row& row : rows) {
    if (used + row.bytes > capacity) break;
    used += row.bytes;
    hits += row.lookups;
  }
  EXPECT_NEAR(MeasureHostCache({a, b}, Bytes(capacity)).hit_share, hits / 4000, 0.02);
}

TEST(HostCache, BiggerCacheNeverMissesMore) {
  const std::vector<CachedShard> shards = {{1e7, 512, 1e6, 1.05}, {1e5, 128, 1e5, 0}, {3e6, 1024, 2e5, 0.7}};
  double before = std::numeric_limits<double>::infinity();
  for (double bytes = 1e5; bytes < 2e10; bytes *= 3) {
    const HostCacheTraffic traffic = MeasureHostCache(shards, Bytes(bytes));
    EXPECT_LE(traffic.missed_bytes.value, before * (1 + 1e-6)) << bytes;
    before = traffic.missed_bytes.value;
  }
}

}  // namespace
}  // namespace portolan
