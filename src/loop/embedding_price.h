#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/network.h"
#include "loop/calibration.h"
#include "loop/lookup_statistics.h"
#include "loop/step_timeline.h"

namespace portolan {

// Seconds a step of a network's embedding tables, from the calibration's grids: by lookups, distinct rows, and what of
// rows, states, pooled outputs and gradients the caches hold.
class EmbeddingPrice {
 public:
  // `timeline` null: outputs and gradients are in the cache, and rows as long as the batches' bytes let them.
  EmbeddingPrice(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                 const StepTimeline* timeline);
  double Forward() const;
  double Backward() const;
  // Of clipping, without the dense parameters: sorts and sums all tables as the update does, without touching rows.
  double SquaredNorm() const;

 private:
  struct Sum {
    double lookups = 0, distinct = 0, weighted_dim = 0;
    void Add(const TableLookups& table, double dim) {
      lookups += table.lookups;
      distinct += std::max(table.distinct, 1.0);
      weighted_dim += table.lookups * dim;
    }
    double Dim() const { return weighted_dim / lookups; }
  };
  double Dim(size_t table) const;
  // Seconds a lookup of an update: rows and states by where they are;
  double OfRows(size_t table, const std::string& update, double repeats) const;
  // more where the gradients of the pooled rows are not in the cache;
  double OfGradients(double dim, double repeats) const;
  // more or less where `rows` need another number of sort passes than the grids' tables;
  double ExtraOfSort(size_t table, double rows) const;
  // more or less of another number of lookups a call than kCalibratedLookups.
  double ExtraOfCount(const std::string& update, double count, double dim, double repeats) const;

  const NetworkPlan& plan_;
  const std::vector<TableLookups>& lookups_;
  const Calibration& c_;
  const StepTimeline* timeline_;
  const std::string format_;
  double all_rows_ = 0, far_ = 0;
  bool per_table_ = false, fused_ = true;
};

}  // namespace portolan
