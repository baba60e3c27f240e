#pragma once

#include <string>
#include <vector>

#include "plan/estimate_step.h"

namespace portolan {

// How much bigger one dimension of a job may become at an equal step time.
struct Dividend {
  std::string
      dimension;      // "table rows", "embedding dimension", "sequence length", "local batch", "bytes of a row value"
  double factor = 1;  // on the new machine, at the ported baseline's step time (batch: time a sample)
  double factor_from = 1;  // on the old machine, at its own step time
  std::string limit;       // what stops it: "memory", "time" "the search's end (64x)" or "fp32 is the widest format"
};

// One side of the comparison: a recipe as it is priced on a cluster, and the step time to meet.
struct DividendSide {
  const Cluster& cluster;
  const Recipe& recipe;
  const Placement& placement;  // of the estimate: tables stay where it has them while they grow
  Seconds budget;
};

// Bisection on each dimension that the model has, to 1 %; a dimension that the model's shapes do not allow is left out.
// Rows that are stored narrower than fp32 are tried in the wider formats.
std::vector<Dividend> CapacityDividends(const Model& model, const DividendSide& from, const DividendSide& to);

}  // namespace portolan
