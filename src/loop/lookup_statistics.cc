#include "loop/lookup_statistics.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace portolan {
namespace {

// Lookups whose row was among the `rows` before them.
double SoonAgain(const std::vector<int64_t>& ids, double rows) {
  std::unordered_map<int64_t, size_t> last;
  double soon = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [found, fresh] = last.try_emplace(ids[i], i);
    if (!fresh && static_cast<double>(i - found->second) <= rows) ++soon;
    found->second = i;
  }
  return soon;
}

}  // namespace

double TableLookups::InCache() const { return std::accumulate(aged.begin(), aged.end(), 0.0); }

std::vector<TableLookups> CountLookups(const NetworkPlan& plan, const std::vector<Batch>& batches,
                                       const CacheSizes& caches, double other_bytes) {
  std::vector<TableLookups> counts(plan.tables.size());
  if (batches.empty()) return counts;
  // Batch in which each row was touched last, and the bytes that every batch touched: a row's age in bytes is what the
  // batches since then touched, rows that they share counted once in each.
  std::vector<std::unordered_map<int64_t, size_t>> last(plan.tables.size());
  std::vector<double> touched_before(batches.size() + 1);
  double judged = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    const Batch& batch = batches[b];
    // The first half only fills the cache, but for a job of one batch.
    const bool judge = b >= batches.size() / 2;
    judged += judge ? 1 : 0;
    double touched = other_bytes;
    std::vector<int64_t> ids;
    for (size_t t = 0; t < plan.tables.size(); ++t) {
      const auto dim = static_cast<int64_t>(plan.tables[t].dim);
      const double row_bytes = static_cast<double>(kernels::RowBytes(plan.options.row, dim) +
                                                   4 * kernels::RowStateFloats(plan.options.row_optimizer, dim));
      ids.clear();
      for (size_t f = 0; f < plan.features.size(); ++f) {
        if (plan.features[f].table != static_cast<int>(t)) continue;
        const auto begin = batch.offsets[f * static_cast<size_t>(batch.size)];
        const auto end = batch.offsets[(f + 1) * static_cast<size_t>(batch.size)];
        ids.insert(ids.end(), batch.ids.begin() + begin, batch.ids.begin() + end);
        if (judge) counts[t].bags += static_cast<double>(batch.size);
      }
      if (judge) {
        counts[t].lookups += static_cast<double>(ids.size());
        counts[t].near += SoonAgain(ids, caches.near_bytes / std::max(row_bytes, 64.0));
      }
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      touched += static_cast<double>(ids.size()) * std::max(row_bytes, 64.0);
      if (judge) counts[t].distinct += static_cast<double>(ids.size());
      // A table that the cache holds whole stays there, if its rows come often; the rest goes by age.
      for (const int64_t id : ids) {
        const auto found = last[t].find(id);
        const bool kept = found != last[t].end() &&
                          touched_before[b] - touched_before[found->second] <= caches.last_level_bytes &&
                          b - found->second <= TableLookups::kAges;
        if (judge && kept) counts[t].aged[b - found->second - 1] += 1;
        last[t][id] = b;
      }
    }
    touched_before[b + 1] = touched_before[b] + touched;
  }
  for (TableLookups& table : counts) {
    table.near = table.lookups > 0 ? table.near / table.lookups : 0;
    for (double& rows : table.aged) rows = table.distinct > 0 ? rows / table.distinct : 0;
    table.lookups /= judged;
    table.bags /= judged;
    table.distinct /= judged;
  }
  return counts;
}

}  // namespace portolan
