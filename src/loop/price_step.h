#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/network.h"
#include "loop/calibration.h"
#include "loop/lookup_statistics.h"

namespace portolan {

// Seconds of one training step of the engine on the calibrated machine, by the phases that the engine itself marks.
struct StepPrice {
  double embedding_forward = 0, dense_forward = 0, dense_backward = 0, gradient_norm = 0, dense_optimizer = 0,
         embedding_backward = 0;
  double Total() const {
    return embedding_forward + dense_forward + dense_backward + gradient_norm + dense_optimizer + embedding_backward;
  }
  void Scale(double factor);
  // By the engine's names, in its order.
  std::vector<std::pair<std::string, double>> Phases() const;
};

// Adds up the calls that the plan's layers say they make (Layer::Calls), each at its calibrated time, and the embedding
// kernels by lookups, distinct rows and how many of them the caches hold. Nothing is fitted to a step.
// `clips`: the gradient norm is computed.
enum class Clipping { kNone, kNorm };
StepPrice PriceStep(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                    Clipping clipping);

// One kernel call of a layer, in seconds.
double PriceCall(const KernelCall& call, const Calibration& calibration);

}  // namespace portolan
