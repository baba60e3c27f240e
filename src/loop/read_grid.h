#pragma once

#include "base/yaml.h"
#include "loop/measured_grid.h"

namespace portolan {

// A grid of a calibration file, {axes: [[...], ...], seconds: [...]}: as many seconds as points, axes that ascend, and
// all numbers in `range`.
Result<MeasuredGrid> ReadMeasuredGrid(const YamlValue& entry, const Range& range);

}  // namespace portolan
