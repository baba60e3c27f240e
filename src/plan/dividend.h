#pragma once

#include <string>
#include <vector>

#include "plan/estimate_step.h"

namespace portolan {

// How much bigger one dimension of a job may become at an equal step time.
struct Dividend {
  std::string dimension;   // "table rows", "embedding dimension", "sequence length", "local batch"
  double factor = 1;       // on the new machine, at the ported baseline's step time (batch: time a sample)
  double factor_from = 1;  // on the old machine, at its own step time
  std::string limit;       // what stops it: "memory", "time" or "the search's end (64x)"
};

// Bisection on each dimension that the model has, to 1 %; a dimension that the model's shapes do not allow is left out.
std::vector<Dividend> CapacityDividends(const Model& model, const Cluster& from, const Recipe& from_recipe,
                                        Seconds from_step, const Cluster& to, const Recipe& to_recipe,
                                        Seconds to_budget);

}  // namespace portolan
