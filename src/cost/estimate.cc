#include "cost/estimate.h"

namespace portolan {

const char* BindingPart(const Estimate& estimate) {
  const char* name = "compute";
  Seconds largest = estimate.compute;
  if (estimate.memory > largest) {
    name = "memory";
    largest = estimate.memory;
  }
  if (estimate.communication > largest) {
    name = "communication";
    largest = estimate.communication;
  }
  if (estimate.launch > largest) {
    name = "launch";
  }
  return name;
}

}  // namespace portolan
