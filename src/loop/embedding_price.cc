#include "loop/embedding_price.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/embedding/embedding.h"
#include "loop/kernel_names.h"

namespace portolan {
namespace {

// Passes of the radix sort over keys of so many rows (cpu_runs.h: digits of 11 bits).
double SortPasses(double rows) {
  const auto bits = static_cast<double>(std::bit_width(static_cast<uint64_t>(std::max(rows - 1, 1.0))));
  return std::max(1.0, std::ceil(bits / 11));
}

// Seconds a lookup of an update of rows that have `repeats` lookups each: a part for every lookup and one for every
// row, so linear in 1 / repeats between the grid's points.
double AtRepeats(const MeasuredGrid& grid, double dim, double repeats) {
  const std::vector<double>& ticks = grid.axes[1];
  if (repeats <= ticks.front()) return grid.At({dim, ticks.front()});
  for (size_t i = 1; i < ticks.size(); ++i) {
    if (repeats > ticks[i]) continue;
    const double share = (1 / ticks[i - 1] - 1 / repeats) / (1 / ticks[i - 1] - 1 / ticks[i]);
    return (1 - share) * grid.At({dim, ticks[i - 1]}) + share * grid.At({dim, ticks[i]});
  }
  return grid.At({dim, ticks.back()});
}

// The same grids' kernel by levels of the memory: warm is the last-level cache.
double Extra(const MeasuredGrid& grid, const MeasuredGrid& of, const std::vector<double>& at) {
  return std::max(0.0, grid.At(at) - of.At(at));
}

}  // namespace

EmbeddingPrice::EmbeddingPrice(const NetworkPlan& plan, const std::vector<TableLookups>& lookups,
                               const Calibration& calibration, const StepTimeline* timeline)
    : plan_(plan), lookups_(lookups), c_(calibration), timeline_(timeline), format_(FormatName(plan.options.row)) {
  double bytes = 0;
  for (const Table& table : plan.tables) {
    all_rows_ += table.rows;
    bytes += table.rows * static_cast<double>(kernels::RowBytes(plan.options.row, table.dim));
  }
  // Address translations are shared by all tables.
  if (bytes > c_.cold_table_bytes && c_.far_table_bytes > c_.cold_table_bytes) {
    far_ = std::min(std::log(bytes / c_.cold_table_bytes) / std::log(c_.far_table_bytes / c_.cold_table_bytes), 1.0);
  }
  per_table_ = plan.options.table_kernels == TableKernels::kPerTable;
  fused_ = plan.options.embedding_update == EmbeddingUpdate::kFused;
}

double EmbeddingPrice::Dim(size_t table) const { return static_cast<double>(plan_.tables[table].dim); }

double EmbeddingPrice::Forward() const {
  const double outputs = timeline_ == nullptr ? 0 : timeline_->PooledOutputs();
  double seconds = 0;
  for (size_t t = 0; t < plan_.tables.size(); ++t) {
    const TableLookups& counts = lookups_[t];
    if (counts.lookups <= 0) continue;
    const std::vector<double> at = {Dim(t), std::max(counts.lookups / std::max(counts.bags, 1.0), 1.0)};
    const MeasuredGrid &warm = c_.Grid("embedding_forward." + format_ + ".warm"),
                       &near = c_.Grid("embedding_forward.fp32.near");
    // The first lookup of a row in this batch can miss the last level, one that comes soon after another of its row
    // finds it in the core's own cache.
    const double missing = timeline_ == nullptr ? 1 - counts.InCache() : timeline_->RowsForward(counts);
    const double cold = missing * counts.distinct / counts.lookups;
    const double saved = Extra(c_.Grid("embedding_forward.fp32.warm"), near, at);
    seconds += counts.lookups *
               (warm.At(at) - counts.near * std::min(saved, 0.9 * warm.At(at)) +
                cold * Extra(c_.Grid("embedding_forward." + format_ + ".cold"), warm, at) +
                outputs * Extra(c_.Grid("embedding_forward.fp32.spilled"), c_.Grid("embedding_forward.fp32.warm"), at) +
                cold * far_ * c_.far_lookup_s);
  }
  return seconds > 0 ? seconds + c_.lookup_call_s * (per_table_ ? static_cast<double>(plan_.features.size()) : 1) : 0;
}

double EmbeddingPrice::OfRows(size_t table, const std::string& update, double repeats) const {
  const TableLookups& counts = lookups_[table];
  const double dim = Dim(table);
  const bool sgd_only = plan_.options.row_optimizer == kernels::RowOptimizer::kSgd;
  const auto at = [&](const std::string& kernel, const char* level) {
    return AtRepeats(c_.Grid(update + kernel + level), dim, repeats);
  };
  const std::string rows = format_ == std::string("fp32") ? "sgd" : format_;
  const std::string optimizer = OptimizerName(plan_.options.row_optimizer);
  const double sgd_misses = std::max(0.0, at("sgd", ".cold") - at("sgd", ".warm"));
  const double row_misses = rows == "sgd" ? sgd_misses : std::max(0.0, at(rows, ".cold") - at(rows, ".warm"));
  const double rows_missing = timeline_ == nullptr ? 0 : timeline_->RowsUpdate(counts);
  // Rows are updated in the order of the table: where most of them are, memory is read as a stream.
  const double dense = std::min(counts.distinct / std::max(plan_.tables[table].rows, 1.0), 1.0);
  const auto missed = [&](double at_random, double bytes) {
    return (1 - dense) * at_random + dense * std::min(at_random, 2 * bytes * c_.MissSecondsPerByte() / repeats);
  };
  double each =
      at(optimizer, ".warm") + at(rows, ".warm") - at("sgd", ".warm") +
      rows_missing *
          missed(row_misses, static_cast<double>(kernels::RowBytes(plan_.options.row, static_cast<int64_t>(dim))));
  if (!sgd_only) {
    const double state_misses = at(optimizer, ".cold") - at(optimizer, ".warm") - sgd_misses;
    const double missing = timeline_ == nullptr ? 1 - counts.InCache() : timeline_->RowStates(counts);
    const auto floats = kernels::RowStateFloats(plan_.options.row_optimizer, static_cast<int64_t>(dim));
    each += missing * missed(std::max(0.0, state_misses), 4 * static_cast<double>(floats));
  }
  return each + (1 - counts.InCache()) / repeats * far_ * c_.far_update_s;
}

double EmbeddingPrice::OfGradients(double dim, double repeats) const {
  if (timeline_ == nullptr) return 0;
  return timeline_->PooledGradients() * std::max(0.0, AtRepeats(c_.Grid("embedding_fused.sgd.spilled"), dim, repeats) -
                                                          AtRepeats(c_.Grid("embedding_fused.sgd.warm"), dim, repeats));
}

double EmbeddingPrice::ExtraOfSort(size_t table, double rows) const {
  return (SortPasses(rows) - SortPasses(c_.warm_table_bytes / (4 * Dim(table)))) * c_.sort_pass_s;
}

double EmbeddingPrice::Backward() const {
  const std::string update = fused_ ? "embedding_fused." : "embedding_separate.";
  double seconds = 0;
  Sum all;
  for (size_t t = 0; t < plan_.tables.size(); ++t) {
    const TableLookups& counts = lookups_[t];
    if (counts.lookups <= 0) continue;
    const double repeats = counts.lookups / std::max(counts.distinct, 1.0);
    // The grids' tables sort in as many passes as their rows need; this one sorts with all tables of its kernel.
    seconds += counts.lookups * (OfRows(t, update, repeats) + OfGradients(Dim(t), repeats) +
                                 ExtraOfSort(t, per_table_ ? plan_.tables[t].rows : all_rows_));
    if (per_table_) {
      seconds += counts.lookups * ExtraOfCount(update, counts.lookups, Dim(t), repeats);
      // Each table's ids and offsets are copied by one thread.
      seconds += 2 * sizeof(int64_t) * (counts.lookups + counts.bags) / c_.copy_one_thread_bytes_per_s;
    }
    all.Add(counts, Dim(t));
  }
  if (all.lookups > 0 && !per_table_) {
    seconds += all.lookups * ExtraOfCount(update, all.lookups, all.Dim(), all.lookups / all.distinct);
  }
  return std::max(seconds, 0.0);
}

double EmbeddingPrice::SquaredNorm() const {
  double seconds = 0;
  Sum all;
  for (size_t t = 0; t < plan_.tables.size(); ++t) {
    const TableLookups& counts = lookups_[t];
    if (counts.lookups <= 0) continue;
    const double repeats = counts.lookups / std::max(counts.distinct, 1.0);
    seconds += counts.lookups * (AtRepeats(c_.Grid("embedding_fused.sgd.warm"), Dim(t), repeats) +
                                 OfGradients(Dim(t), repeats) + ExtraOfSort(t, all_rows_));
    all.Add(counts, Dim(t));
  }
  if (all.lookups <= 0) return 0;
  seconds += all.lookups * ExtraOfCount("embedding_fused.", all.lookups, all.Dim(), all.lookups / all.distinct);
  return std::max(seconds, 0.0);
}

double EmbeddingPrice::ExtraOfCount(const std::string& update, double count, double dim, double repeats) const {
  const MeasuredGrid& grid = c_.Grid(update + "lookups");
  const double few = grid.axes[2].front(), many = grid.axes[2].back();
  const double least = grid.axes[0].front(), next = grid.axes[0].size() > 1 ? grid.axes[0][1] : least;
  const auto extra = [&](double lookups_a_row) {
    const auto each = [&](double lookups) { return grid.At({lookups, dim, lookups_a_row}); };
    double seconds = each(std::clamp(count, least, grid.axes[0].back()));
    // Below the smallest call that was measured what a call costs at least is shared by fewer.
    if (count < least && next > least) {
      const double a_call = std::max(0.0, (each(least) - each(next)) / (1 / least - 1 / next));
      seconds += a_call * (1 / count - 1 / least);
    }
    return seconds - each(static_cast<double>(kCalibratedLookups));
  };
  // As AtRepeats: a part for every lookup and one for every row.
  const double share = few < many ? std::clamp((1 / few - 1 / repeats) / (1 / few - 1 / many), 0.0, 1.0) : 0;
  return (1 - share) * extra(few) + share * extra(many);
}

}  // namespace portolan
