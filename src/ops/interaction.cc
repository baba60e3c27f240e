#include "ops/interaction.h"

#include "base/check.h"

namespace portolan {
namespace {

struct Sizes {
  double pairs;   // dot products kept, all samples
  double inputs;  // elements of the features
  double dense;   // elements of the dense feature, all samples
};

Sizes SizesOf(const DotInteractionShape& shape) {
  PORTOLAN_CHECK(shape.batch >= 0 && shape.features >= 0 && shape.dim >= 0, "negative interaction size");
  const double batch = static_cast<double>(shape.batch);
  const double features = static_cast<double>(shape.features);
  const double dim = static_cast<double>(shape.dim);
  return {batch * features * (features - 1.0) / 2.0, batch * features * dim, features > 0 ? batch * dim : 0.0};
}

}  // namespace

Work DotInteractionForwardWork(const DotInteractionShape& shape) {
  const Sizes sizes = SizesOf(shape);
  Work work;
  work.matrix_dtype = shape.dtype;
  work.matrix_flops = Flops(2.0 * static_cast<double>(shape.dim) * sizes.pairs);
  work.read = SizeOf(shape.dtype) * sizes.inputs;
  work.written = SizeOf(shape.dtype) * (sizes.pairs + sizes.dense);
  work.parallelism = sizes.pairs + sizes.dense;
  return work;
}

Work DotInteractionBackwardWork(const DotInteractionShape& shape) {
  const Sizes sizes = SizesOf(shape);
  Work work;
  work.matrix_dtype = shape.dtype;
  work.matrix_flops = Flops(4.0 * static_cast<double>(shape.dim) * sizes.pairs);
  work.vector_flops = Flops(sizes.dense);
  work.read = SizeOf(shape.dtype) * (sizes.inputs + sizes.pairs + sizes.dense);
  work.written = SizeOf(shape.dtype) * sizes.inputs;
  work.parallelism = sizes.inputs;
  return work;
}

}  // namespace portolan
