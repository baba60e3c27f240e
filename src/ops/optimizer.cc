#include "ops/optimizer.h"

#include "base/check.h"

namespace portolan {
namespace {

// Arithmetic and state of one parameter. Flops count multiplications and additions of the update as written below;
// step-wide scalars (bias corrections) are free.
struct Update {
  double state_values;
  double flops;
  double transcendentals;
};

Update UpdateOf(DenseOptimizer optimizer) {
  switch (optimizer) {
    case DenseOptimizer::kSgd:  // w -= lr g
      return {0, 2, 0};
    case DenseOptimizer::kMomentum:  // v = mu v + g; w -= lr v
      return {1, 4, 0};
    case DenseOptimizer::kAdagrad:  // s += g g; w -= lr g / (sqrt(s) + eps): 2 + 1 + 1 + 2
      return {1, 6, 2};
    case DenseOptimizer::kAdam:  // m = b1 m + (1-b1) g: 3; v = b2 v + (1-b2) g g: 4; w -= lr m / (sqrt(v) + eps): 4
      return {2, 11, 2};
  }
  PORTOLAN_CHECK(false, "dense optimizer without a row");
}

}  // namespace

Bytes DenseOptimizerStateBytes(DenseOptimizer optimizer, double parameters, DType state) {
  PORTOLAN_CHECK(parameters >= 0, "negative parameter count");
  return SizeOf(state) * (UpdateOf(optimizer).state_values * parameters);
}

Work DenseOptimizerWork(const DenseOptimizerShape& shape) {
  const Update update = UpdateOf(shape.optimizer);
  const Bytes state = DenseOptimizerStateBytes(shape.optimizer, shape.parameters, shape.state);
  const Bytes weights = SizeOf(DType::kFp32) * shape.parameters;
  Work work;
  work.vector_flops = Flops(update.flops * shape.parameters);
  work.transcendentals = update.transcendentals * shape.parameters;
  work.read = SizeOf(shape.gradient) * shape.parameters + weights + state;
  work.written = weights + state;
  if (shape.has_half_copy) work.written += SizeOf(DType::kFp16) * shape.parameters;
  work.parallelism = shape.parameters;
  return work;
}

}  // namespace portolan
