#include "kernels/gemm/gemm.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::reference {

void Gemm(const GemmProblem& problem, const float* a, const float* b, float* d) {
  const bool narrow = problem.format == GemmFormat::kBf16;
  const auto seen = [&](float value) { return narrow ? Bf16ToFloat(FloatToBf16(value)) : value; };
  for (int64_t i = 0; i < problem.m; ++i) {
    for (int64_t j = 0; j < problem.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < problem.k; ++k) {
        const float left = problem.a_transposed == Transpose::kYes ? a[k * problem.lda + i] : a[i * problem.lda + k];
        const float right = problem.b_transposed == Transpose::kYes ? b[j * problem.ldb + k] : b[k * problem.ldb + j];
        sum += static_cast<double>(seen(left)) * seen(right);
      }
      float& out = d[i * problem.ldd + j];
      out = static_cast<float>(problem.beta == 0 ? sum : sum + static_cast<double>(problem.beta) * out);
    }
  }
}

}  // namespace portolan::kernels::reference
