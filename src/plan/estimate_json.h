#pragma once

#include <nlohmann/json.hpp>

#include "plan/estimate_step.h"

namespace portolan {

// The document of docs/estimate.md (schema portolan.estimate/1): SI numbers, no clock and no path, so that equal inputs
// give equal bytes.
nlohmann::ordered_json EstimateJson(const StepEstimate& estimate, const Model& model, const Recipe& recipe,
                                    const Cluster& cluster);

}  // namespace portolan
