#pragma once

#include "ops/work.h"

namespace portolan {

// A fused pointwise or normalising kernel: reads and writes whole tensors once each.
struct ElementwiseShape {
  Bytes read;
  Bytes written;
  double elements = 0;           // outputs
  double flops_per_element = 1;  // fp32 vector operations
  double transcendentals_per_element = 0;
  double reduction_length = 0;  // row length that must be reduced before writing (norms); 0 = none
};
// read and written as given; vector_flops and transcendentals per element x elements; parallelism = elements. A
// reduction adds no work here (count its additions in flops_per_element): its cost is latency, the cost model's
// business.
Work ElementwiseWork(const ElementwiseShape& shape);

}  // namespace portolan
