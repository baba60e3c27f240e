#include "loop/measured_grid.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace portolan {

double MeasuredGrid::At(const std::vector<double>& at) const {
  PORTOLAN_CHECK(at.size() == axes.size() && !seconds.empty(), "one extent an axis");
  double beyond = 1;
  std::vector<size_t> low(axes.size());
  std::vector<double> share(axes.size());  // of the upper point
  for (size_t a = 0; a < axes.size(); ++a) {
    const std::vector<double>& ticks = axes[a];
    if (at[a] >= ticks.back()) {
      beyond *= at[a] / ticks.back();
      low[a] = ticks.size() - 1;
    } else if (at[a] > ticks.front()) {
      low[a] = static_cast<size_t>(std::upper_bound(ticks.begin(), ticks.end(), at[a]) - ticks.begin()) - 1;
      share[a] = std::log(at[a] / ticks[low[a]]) / std::log(ticks[low[a] + 1] / ticks[low[a]]);
    }
  }
  double logarithm = 0;
  for (size_t corner = 0; corner < size_t{1} << axes.size(); ++corner) {
    double weight = 1;
    size_t index = 0;
    for (size_t a = 0; a < axes.size(); ++a) {
      const bool upper = (corner >> a & 1) != 0;
      weight *= upper ? share[a] : 1 - share[a];
      index = index * axes[a].size() + low[a] + (upper && share[a] > 0 ? 1 : 0);
    }
    if (weight > 0) logarithm += weight * std::log(seconds[index]);
  }
  return beyond * std::exp(logarithm);
}

}  // namespace portolan
