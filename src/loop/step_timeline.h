#pragma once

#include <vector>

#include "engine/network.h"
#include "loop/calibration.h"
#include "loop/lookup_statistics.h"

namespace portolan {

struct StepPrice;

// When a step touches which of its tensors, and so what of them the last-level cache no longer has when they are
// touched again. Caches lose data in two ways: other data of the step takes their place (bytes), and what else uses the
// cache does, such as the neighbours of a virtual machine (time; Calibration::Lost).
class StepTimeline {
 public:
  // `price`: durations of the phases and layers; a price without misses is a fair start.
  StepTimeline(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
               const StepPrice& price);

  // Seconds more than with everything in the last level. Forward: outputs are fetched, overwritten and written back,
  // weights are read;
  double Forward(size_t layer) const;
  // inputs and what else was kept is read, weights are read, their gradients overwritten;
  double Backward(size_t layer) const;
  // weights, gradients and state are read, all but the gradients written.
  double Optimizer() const;

  // Parts that are not in the cache: pooled rows when they are written, their gradients when the update (or the norm
  // before it) reads them; the distinct rows of a table when they are looked up, when they are updated, and the
  // optimizer's state of them.
  double PooledOutputs() const;
  double PooledGradients() const;
  double RowsForward(const TableLookups& table) const;
  double RowsUpdate(const TableLookups& table) const;
  double RowStates(const TableLookups& table) const;

 private:
  struct Moment {
    double seconds = 0, bytes = 0;
    Moment operator-(const Moment& other) const { return {seconds - other.seconds, bytes - other.bytes}; }
    Moment operator+(const Moment& other) const { return {seconds + other.seconds, bytes + other.bytes}; }
  };
  struct LayerBytes {
    double input = 0, output = 0, kept = 0, parameters = 0;  // kept: scratch from forward to backward
  };
  static LayerBytes BytesOf(const NetworkPlan& plan, const NetworkLayer& layer);
  double Missing(const Moment& age) const;
  // Of rows last touched `ages` batches and `more` before.
  double MissingRows(const TableLookups& table, double first_age, double more_s) const;

  const Calibration& c_;
  std::vector<LayerBytes> layers_;
  std::vector<Moment> forward_, backward_;  // when each layer begins
  Moment lookups_, optimizer_, update_, end_;
  Moment gradients_;  // when those of the pooled rows are written
  double state_floats_ = 0, s_per_byte_ = 0;
};

}  // namespace portolan
