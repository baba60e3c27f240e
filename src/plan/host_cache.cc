#include "plan/host_cache.h"

#include <algorithm>
#include <cmath>

#include "ops/embedding.h"

namespace portolan {
namespace {

// Sum of i^-s for i = 1..n, by the midpoint integral from 1/2 (within 3 % for s <= 2, checked in the test).
double Harmonic(double n, double s) {
  if (n <= 0) return 0;
  if (std::abs(s - 1) < 1e-9) return std::log(2 * n + 1);
  return (std::pow(n + 0.5, 1 - s) - std::pow(0.5, 1 - s)) / (1 - s);
}

// Rows of a shard whose lookups a byte exceed `threshold`.
double RowsAbove(const CachedShard& shard, double threshold) {
  if (shard.rows <= 0 || shard.lookups <= 0) return 0;
  const double first = shard.lookups / Harmonic(shard.rows, shard.zipf_exponent) / shard.row_bytes;
  if (shard.zipf_exponent <= 0) return first > threshold ? shard.rows : 0;
  return std::clamp(std::pow(first / threshold, 1 / shard.zipf_exponent), 0.0, shard.rows);
}

}  // namespace

HostCacheTraffic MeasureHostCache(const std::vector<CachedShard>& shards, Bytes capacity) {
  HostCacheTraffic traffic;
  double total_lookups = 0, highest = 0;
  for (const CachedShard& shard : shards) {
    traffic.host_bytes += Bytes(shard.rows * shard.row_bytes);
    total_lookups += shard.lookups;
    if (shard.rows > 0 && shard.lookups > 0) {
      highest = std::max(highest, shard.lookups / Harmonic(shard.rows, shard.zipf_exponent) / shard.row_bytes);
    }
  }
  if (traffic.host_bytes <= capacity || total_lookups <= 0) return traffic;

  // `low` keeps too much, `high` fits.
  double low = highest * 1e-18, high = highest * 2;
  const auto kept = [&shards](double threshold) {
    double bytes = 0;
    for (const CachedShard& shard : shards) bytes += RowsAbove(shard, threshold) * shard.row_bytes;
    return bytes;
  };
  for (int step = 0; step < 100; ++step) {
    const double middle = std::sqrt(low * high);
    (kept(middle) > capacity.value ? low : high) = middle;
  }
  // Uniform shards at the threshold are kept in part, so that the capacity is used.
  const double left = std::max(0.0, capacity.value - kept(high));
  double at_threshold = 0;
  for (const CachedShard& shard : shards) {
    at_threshold += (RowsAbove(shard, low) - RowsAbove(shard, high)) * shard.row_bytes;
  }
  const double share = at_threshold > 0 ? std::min(1.0, left / at_threshold) : 0;

  double hits = 0;
  for (const CachedShard& shard : shards) {
    if (shard.lookups <= 0) continue;
    const double above = RowsAbove(shard, high);
    const double cached = std::min(shard.rows, above + share * (RowsAbove(shard, low) - above));
    const double all = Harmonic(shard.rows, shard.zipf_exponent);
    const double covered = cached > 0 ? std::min(1.0, Harmonic(cached, shard.zipf_exponent) / all) : 0.0;
    hits += covered * shard.lookups;
    const double distinct = ExpectedUniqueRows(shard.lookups, shard.rows, shard.zipf_exponent);
    const double distinct_cached =
        cached >= 1 ? ExpectedUniqueRows(shard.lookups * covered, cached, shard.zipf_exponent) : 0.0;
    const double missed = std::max(0.0, distinct - distinct_cached);
    traffic.missed_rows += missed;
    traffic.missed_bytes += Bytes(missed * shard.row_bytes);
  }
  traffic.hit_share = hits / total_lookups;
  return traffic;
}

}  // namespace portolan
