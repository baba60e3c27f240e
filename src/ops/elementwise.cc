#include "ops/elementwise.h"

#include "base/check.h"

namespace portolan {

Work ElementwiseWork(const ElementwiseShape& shape) {
  PORTOLAN_CHECK(shape.elements >= 0 && shape.read.value >= 0 && shape.written.value >= 0, "negative elementwise size");
  Work work;
  work.vector_flops = Flops(shape.elements * shape.flops_per_element);
  work.transcendentals = shape.elements * shape.transcendentals_per_element;
  work.read = shape.read;
  work.written = shape.written;
  work.parallelism = shape.elements;
  return work;
}

}  // namespace portolan
