#pragma once

#include <vector>

namespace portolan {

// Times of one kernel over a full grid of its extents.
struct MeasuredGrid {
  std::vector<std::vector<double>> axes;  // ascending, positive
  std::vector<double> seconds;            // a call, positive; the last axis varies fastest

  // Between the points: linear in the logarithms of extents and time, so that both a fixed cost and a rate are met.
  // Below an axis: its first point. Above: the last point, times the extent's ratio (work grows in proportion).
  // `at`: one positive extent an axis.
  double At(const std::vector<double>& at) const;
};

}  // namespace portolan
