#pragma once

#include <cstdint>

#include "ops/work.h"

namespace portolan {

// DLRM dot interaction: per sample, features [F, D] -> the F(F-1)/2 pairwise dot products, concatenated with the dense
// feature [D] (arXiv 1906.00091 §2). One batched kernel.
struct DotInteractionShape {
  int64_t batch = 0;
  int64_t features = 0;
  int64_t dim = 0;
  DType dtype = DType::kFp16;
};
// Forward: matrix_flops = 2 D F(F-1)/2 a sample (the pairs kept; a kernel that computes all F x F does about twice
// that), read = F D, written = F(F-1)/2 + D elements a sample. No pair when F < 2.
Work DotInteractionForwardWork(const DotInteractionShape& shape);
// Backward: each pair's gradient is multiplied by both features: 4 D F(F-1)/2 matrix flops, and D additions for the
// dense feature's second path; read = features and output gradient, written = feature gradients [F, D].
Work DotInteractionBackwardWork(const DotInteractionShape& shape);

}  // namespace portolan
