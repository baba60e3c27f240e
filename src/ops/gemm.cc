#include "ops/gemm.h"

#include "base/check.h"

namespace portolan {

Work GemmWork(const GemmShape& shape) {
  PORTOLAN_CHECK(shape.m >= 0 && shape.n >= 0 && shape.k >= 0 && shape.batch >= 0, "negative GEMM size");
  PORTOLAN_CHECK(shape.groups >= 1, "a GEMM has at least one group");
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  const double batch = static_cast<double>(shape.batch);
  const double groups = static_cast<double>(shape.groups);
  const double outputs = m * n * batch;

  Work work;
  work.matrix_dtype = shape.compute;
  work.matrix_flops = Flops(2.0 * outputs * k);
  work.read = SizeOf(shape.a) * (m * k * batch) + SizeOf(shape.b) * (n * k * batch * groups);
  work.written = SizeOf(shape.d) * outputs;
  work.parallelism = outputs;
  const Bytes bias = SizeOf(shape.d) * (n * batch * groups);
  switch (shape.epilogue) {
    case GemmEpilogue::kNone:
      break;
    case GemmEpilogue::kBias:
      work.read += bias;
      work.vector_flops = Flops(outputs);
      break;
    case GemmEpilogue::kBiasActivation:
      work.read += bias;
      work.vector_flops = Flops(2.0 * outputs);
      break;
    case GemmEpilogue::kActivationGradient:
    case GemmEpilogue::kAdd:
      work.read += SizeOf(shape.d) * outputs;
      work.vector_flops = Flops(outputs);
      break;
  }
  return work;
}

}  // namespace portolan
