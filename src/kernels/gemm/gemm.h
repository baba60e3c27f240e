#pragma once

#include <cstdint>

// Row-major D[M, N] = op(A)[M, K] op(B)[K, N] + beta D. fp32 in memory; `format` is what the products see.
namespace portolan::kernels {

enum class GemmFormat : int32_t {
  kFp32,
  kBf16,  // inputs rounded to bf16 (to nearest, even), products and sums in fp32
};
enum class Transpose : int32_t { kNo, kYes };

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  Transpose a_transposed = Transpose::kNo;  // kYes: A is stored [K, M]
  Transpose b_transposed = Transpose::kNo;  // kYes: B is stored [N, K]
  int64_t lda = 0, ldb = 0, ldd = 0;        // numbers from one stored row to the next
  float beta = 0;                           // 0: D is not read
  GemmFormat format = GemmFormat::kFp32;
};

namespace reference {
void Gemm(const GemmProblem& problem, const float* a, const float* b, float* d);
}  // namespace reference
namespace cpu {
// oneDNN's products over parts whose borders depend on the problem only, never on the number of threads: bit-equal for
// any number of threads on one processor. kBf16 converts copies of A and B; where the processor has no bf16 products it
// rounds them and multiplies in fp32, which is slower than kFp32.
void Gemm(const GemmProblem& problem, const float* a, const float* b, float* d);
}  // namespace cpu

}  // namespace portolan::kernels
