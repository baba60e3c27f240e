#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace portolan::kernels::cpu {

// Whether the processor multiplies pairs of bf16 and adds them in fp32 (AVX512_BF16).
bool HasBf16Products();

// Copies of a product's operands in bf16, in memory that is used again by the next product of this thread.
class Bf16Operands {
 public:
  Bf16Operands(const GemmProblem& problem, const float* a, const float* b);
  // d [m, n] = rows i.. of op(A) times columns j.. of op(B), over k to k + depth. From any thread.
  void Multiply(int64_t i, int64_t j, int64_t k, int64_t m, int64_t n, int64_t depth, float* d, int64_t ldd) const;

 private:
  bool a_transposed_, b_transposed_;
  int64_t a_columns_, b_columns_;  // of the stored copies
  uint16_t *a_, *b_;
};

}  // namespace portolan::kernels::cpu
