#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/network.h"
#include "loop/calibration.h"
#include "loop/lookup_statistics.h"

namespace portolan {

// Seconds of one training step of the engine on the calibrated machine, by the phases that the engine itself marks
// and by the class of the kernels, which a machine slows down by different factors.
struct StepPrice {
  enum Phase {
    kEmbeddingForward,
    kDenseForward,
    kDenseBackward,
    kGradientNorm,
    kDenseOptimizer,
    kEmbeddingBackward,
    kPhases
  };
  std::array<ClassTimes, kPhases> seconds{};
  std::vector<LayerTime> layers;  // of them, the kernel calls of each layer of the plan; not scaled

  void Add(Phase phase, KernelClass kernel_class, double more) {
    seconds[phase][static_cast<size_t>(kernel_class)] += more;
  }
  double Of(Phase phase) const;
  double Total() const;
  void Scale(const ClassTimes& slowdown);
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
