#pragma once

#include "plan/bound_options.h"

namespace portolan {

struct SplitBound {
  Seconds bound;
  // Of `problem.tables`: those with the shortest step, were every rank to have the mean, among all at which a part of
  // the bound is attained. Empty where there is none.
  std::vector<TableSplit> splits;
};

// A lower bound on the step by pricing the parts of the embedding work against one another, for recipes with one
// compute stream; 0 where there are two. `fixed`: work of any placement of the problem. The argument is in the .cc.
SplitBound PlacementDualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed);

}  // namespace portolan
