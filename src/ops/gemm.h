#pragma once

#include <cstdint>

#include "ops/work.h"

namespace portolan {

// Operand storage, row-major D[M,N] = A[M,K] B[K,N]: the first letter is A, the second B; T for B means that it is
// stored [N,K].
enum class GemmLayout {
  kTN,  // forward: activations [M,K], weights stored [N,K]
  kNN,  // input gradient: weights read as [K,N]
  kNT,  // weight gradient: A stored [K,M]
};

// What is done to a tile of D before it is written.
enum class GemmEpilogue {
  kNone,
  kBias,                // + bias [N], read once a product: M N flops
  kBiasActivation,      // ReLU(D + bias): 2 M N flops
  kActivationGradient,  // times the activation's derivative, from its saved output [M,N] in d's type: M N flops
  kAdd,                 // + C [M,N] in d's type (beta = 1): M N flops
};

// One dense product, `batch` equal products (batched), or `groups` products of different M that share N and K
// (grouped: m is then the total over the groups).
struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
  int64_t batch = 1;
  int64_t groups = 1;
  GemmLayout layout = GemmLayout::kTN;
  DType a = DType::kBf16, b = DType::kBf16, d = DType::kBf16;
  DType compute = DType::kBf16;  // the matrix unit's input format: kTf32 for fp32 storage with tf32 arithmetic
  GemmEpilogue epilogue = GemmEpilogue::kNone;
};

// matrix_flops = 2 M N K batch; read = A + groups x B (+ the epilogue's operand), written = D; parallelism = M N batch;
// vector_flops: the epilogue's. A grouped product is the sum of its groups' products. With M = 0 or K = 0 the sizes
// that remain are still read and written (D = 0 or D = bias).
Work GemmWork(const GemmShape& shape);

}  // namespace portolan
