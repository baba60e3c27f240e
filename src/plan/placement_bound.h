#pragma once

#include "plan/estimate_step.h"

namespace portolan {

// The bound behind StepLowerBound, for a model whose structure is revised already.
Seconds PlacementBound(const Model& model, const Recipe& recipe, const Cluster& cluster,
                       const StepConstants& constants);

}  // namespace portolan
