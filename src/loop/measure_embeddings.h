#pragma once

#include <cstdint>
#include <functional>

#include "loop/sweeper.h"

namespace portolan {

// The embedding grids and the sort, into the sweeper's calibration. `near_floats` [near_count]: memory for outputs and
// gradients of pooled rows. `say` is told the share done.
void MeasureEmbeddings(Sweeper* sweeper, float* near_floats, int64_t near_count,
                       const std::function<void(double done)>& say);

}  // namespace portolan
