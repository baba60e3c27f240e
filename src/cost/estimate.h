#pragma once

#include "units/quantity.h"

namespace portolan {

// The time of one op on one device, as a breakdown. The parts overlap inside a kernel, so total is not their sum: total
// = launch + max(compute, memory) + communication for the models in this folder unless a header says otherwise.
struct Estimate {
  Seconds compute;        // matrix, vector or special-function units busy
  Seconds memory;         // HBM or cache traffic
  Seconds communication;  // links between devices
  Seconds launch;         // fixed cost of the kernels
  Seconds total;
};

// The name of the largest part: "compute", "memory", "communication" or "launch".
const char* BindingPart(const Estimate& estimate);

}  // namespace portolan
