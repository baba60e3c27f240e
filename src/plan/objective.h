#pragma once

#include <optional>

#include "model/model.h"
#include "units/quantity.h"

namespace portolan {

// Samples to the model's quality target at a global batch: log-log interpolation of the published points, held constant
// below the smallest batch; nullopt without points, or beyond 1.5 times the largest.
std::optional<double> SamplesToQualityAt(const Model& model, double global_batch);

// Time to quality = samples x step / batch; nullopt where the samples are not known.
std::optional<Seconds> TimeToQuality(const Model& model, double global_batch, Seconds step);

// What a plan minimises: seconds to quality where the model's points reach, else seconds a sample. Only values of one
// kind are compared.
struct Objective {
  bool to_quality = false;
  double seconds = 0;
};
Objective ObjectiveOf(const Model& model, double global_batch, Seconds step);

}  // namespace portolan
