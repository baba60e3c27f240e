#include "loop/lookup_statistics.h"

#include <algorithm>
#include <unordered_map>

namespace portolan {

std::vector<TableLookups> CountLookups(const NetworkPlan& plan, const std::vector<Batch>& batches, double cache_bytes,
                                       double other_bytes) {
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
      if (judge) counts[t].lookups += static_cast<double>(ids.size());
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      touched += static_cast<double>(ids.size()) * std::max(row_bytes, 64.0);
      if (judge) counts[t].distinct += static_cast<double>(ids.size());
      // A table that the cache holds whole stays there, if its rows come often; the rest goes by age.
      for (const int64_t id : ids) {
        const auto found = last[t].find(id);
        const bool cold = found == last[t].end() || touched_before[b] - touched_before[found->second] > cache_bytes;
        if (judge && cold) counts[t].cold_rows += 1;
        last[t][id] = b;
      }
    }
    touched_before[b + 1] = touched_before[b] + touched;
  }
  for (TableLookups& table : counts) {
    table.lookups /= judged;
    table.bags /= judged;
    table.cold_rows = table.distinct > 0 ? table.cold_rows / table.distinct : 0;
    table.distinct /= judged;
  }
  return counts;
}

}  // namespace portolan
