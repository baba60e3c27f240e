#pragma once

#include "ops/work.h"

namespace portolan {

enum class DenseOptimizer { kSgd, kMomentum, kAdagrad, kAdam };

// One fused pass over `parameters` dense parameters held by this device.
struct DenseOptimizerShape {
  DenseOptimizer optimizer = DenseOptimizer::kAdam;
  double parameters = 0;
  DType gradient = DType::kFp32;
  DType state = DType::kFp32;  // stored optimizer state
  bool has_half_copy = false;  // fp32 master weights with a 16-bit copy written for the next forward pass
};
// Values of state a parameter: 0 (sgd), 1 (momentum, adagrad), 2 (adam). Weights are not counted.
Bytes DenseOptimizerStateBytes(DenseOptimizer optimizer, double parameters, DType state = DType::kFp32);
// Read: gradient, fp32 weight, state; written: weight, state, and the 16-bit copy. vector_flops a parameter: 2 (sgd), 4
// (momentum), 6 (adagrad), 11 (adam); transcendentals: a square root and a reciprocal for the last two. The counts are
// those of the textbook updates (arXiv 1412.6980 algorithm 1; Duchi et al., JMLR 12, 2011), see optimizer.cc.
Work DenseOptimizerWork(const DenseOptimizerShape& shape);

}  // namespace portolan
