#include <algorithm>
#include <cmath>
#include <cstdint>

#include "select/family_tensile.h"

namespace portolan {
namespace {

// Largest power of two that divides x and is at most `most` (a power of two).
int64_t LowBit(int64_t x, int64_t most) {
  const int64_t both = x | most;
  return both & -both;
}

}  // namespace

double StreamKGrid(double tiles, double iterations, double units) {
  if (tiles > units) {
    const double full = std::floor(tiles / units);
    for (const double fraction : {0.0, 1.0 / 2.0, 1.0 / 8.0, 1.0 / 5.0, 1.0 / 4.0, 1.0 / 3.0}) {
      const double grid = std::floor(tiles / (full + fraction) + 0.5);
      if (grid <= units) return grid;
    }
    return units;
  }
  for (const double factor : {8.0, 6.0, 4.0, 3.0, 2.0}) {
    if (tiles * factor <= units && iterations >= 8.0 * factor) return tiles * factor;
  }
  return std::max(1.0, tiles);
}

DiePanels PanelsOfDie(double tiles_0, double tiles_1, double grid, double parts, double swizzle, double dies,
                      WorkGroupOrder order) {
  const double groups = std::max(1.0, grid / dies);  // work-groups of one die
  const double wide = std::min(swizzle, tiles_1);
  DiePanels panels;
  if (order == WorkGroupOrder::kChunked || dies <= 1.0) {
    const double tiles = std::max(1.0, groups / parts);
    const double columns = std::min(wide, tiles);
    const double rows = std::min(std::max(1.0, tiles / columns), tiles_0);
    const double blocks = std::max(1.0, tiles / (columns * rows));
    panels.rows = rows * parts;
    panels.columns = columns * blocks * parts;
  } else {
    // Work-groups of a die are `stride` tiles apart, all on the same part of K.
    const auto stride = static_cast<int64_t>(std::max(1.0, dies / std::min(parts, dies)));
    const auto width = static_cast<int64_t>(wide);
    const double columns = std::max(1.0, wide / static_cast<double>(LowBit(width, LowBit(stride, 64))));
    const double rows = std::min(tiles_0, std::max(1.0, groups / columns));
    const double blocks = std::min(std::max(1.0, groups / (columns * rows)), std::ceil(tiles_1 / wide));
    panels.rows = rows;
    panels.columns = columns * blocks;
  }
  return panels;
}

}  // namespace portolan
