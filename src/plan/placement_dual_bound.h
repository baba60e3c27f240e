#pragma once

#include "plan/bound_options.h"

namespace portolan {

// A lower bound on the step by pricing the parts of the embedding work against one another, for recipes with one
// compute stream; 0 where there are two. `fixed`: work of any placement of the problem. The argument is in the .cc.
Seconds PlacementDualBound(const StepPricer& pricer, const BoundProblem& problem, const EmbeddingWork& fixed);

}  // namespace portolan
