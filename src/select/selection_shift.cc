#include "select/selection_shift.h"

#include <cmath>

namespace portolan {
namespace {

// The smoothing's width h as a share of the error s.
constexpr double kSmoothing = 0.5;
// Beyond six widths a weight is under 2e-8: thousands of kernels there change nothing.
constexpr double kWidths = 6.0;

}  // namespace

void SelectionShift::Add(std::span<const double> seconds) {
  const double width = kSmoothing * error_;
  const double farthest = fastest_ * std::exp(kWidths * width);
  for (const double time : seconds) {
    if (!(time < farthest)) continue;
    const double gap = std::log(time / fastest_);
    const double weight = std::exp(-0.5 * gap * gap / (width * width));
    weights_ += weight;
    moments_ += weight * gap;
  }
}

double SelectionShift::Factor() const {
  return weights_ > 0.0 ? std::exp(moments_ / (weights_ * kSmoothing * kSmoothing)) : 1.0;
}

}  // namespace portolan
