#pragma once

#include "loop/sweeper.h"

namespace portolan {

// What the last-level cache keeps: bytes, and for how long where others use it too (Calibration::Lost); and what a pass
// over data costs more that it has lost. Under a second.
void MeasureCache(Sweeper* sweeper);

}  // namespace portolan
