#include "plan/objective.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace portolan {
namespace {

constexpr double kExtrapolation = 1.5;  // times the largest published batch

}  // namespace

std::optional<double> SamplesToQualityAt(const Model& model, double global_batch) {
  std::vector<SamplesToQuality> points = model.samples_to_quality;
  if (points.empty() || global_batch <= 0) return std::nullopt;
  std::sort(points.begin(), points.end(),
            [](const SamplesToQuality& a, const SamplesToQuality& b) { return a.global_batch < b.global_batch; });
  const double smallest = static_cast<double>(points.front().global_batch);
  const double largest = static_cast<double>(points.back().global_batch);
  if (global_batch <= smallest) return points.front().samples;
  if (global_batch > kExtrapolation * largest) return std::nullopt;
  if (points.size() == 1) return global_batch == largest ? std::optional(points.front().samples) : std::nullopt;
  size_t upper = 1;
  while (upper + 1 < points.size() && static_cast<double>(points[upper].global_batch) < global_batch) ++upper;
  const SamplesToQuality& low = points[upper - 1];
  const SamplesToQuality& high = points[upper];
  const double span = std::log(static_cast<double>(high.global_batch) / static_cast<double>(low.global_batch));
  if (span <= 0) return high.samples;
  const double at = std::log(global_batch / static_cast<double>(low.global_batch)) / span;
  return low.samples * std::pow(high.samples / low.samples, at);
}

std::optional<Seconds> TimeToQuality(const Model& model, double global_batch, Seconds step) {
  const std::optional<double> samples = SamplesToQualityAt(model, global_batch);
  if (!samples) return std::nullopt;
  return *samples / global_batch * step;
}

Objective ObjectiveOf(const Model& model, double global_batch, Seconds step) {
  if (const std::optional<Seconds> time = TimeToQuality(model, global_batch, step)) return {true, time->value};
  return {false, step.value / global_batch};
}

}  // namespace portolan
