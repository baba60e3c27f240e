#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

TEST(GemmReference, ByHand) {
  // (1 2) (5 6; 7 8) = (19 22); beta 2 adds 2 * (1, 1).
  const float a[] = {1, 2}, b[] = {5, 6, 7, 8};
  float d[] = {1, 1};
  GemmProblem problem;
  problem.m = 1;
  problem.n = problem.k = problem.lda = problem.ldb = problem.ldd = 2;
  problem.beta = 2;
  reference::Gemm(problem, a, b, d);
  EXPECT_EQ(d[0], 21);
  EXPECT_EQ(d[1], 24);
}

TEST(Gemm, AgreesWithReference) {
  for (const GemmFormat format : {GemmFormat::kFp32, GemmFormat::kBf16}) {
    for (const auto a_transposed : {Transpose::kNo, Transpose::kYes}) {
      for (const auto b_transposed : {Transpose::kNo, Transpose::kYes}) {
        for (const int64_t m : {1, 300}) {
          for (const int64_t n : {1, 260}) {
            for (const int64_t k : {1, 37, 1100}) {  // the last one is cut into parts
              GemmProblem problem{m, n, k, a_transposed, b_transposed, 0, 0, n + 2, 0.5f, format};
              problem.lda = (a_transposed == Transpose::kYes ? m : k) + 3;
              problem.ldb = (b_transposed == Transpose::kYes ? k : n) + 1;
              const auto a = RandomNumbers((m + k) * problem.lda, 1), b = RandomNumbers((n + k) * problem.ldb, 2);
              std::vector<float> want = RandomNumbers(m * problem.ldd, 3), got = want;
              reference::Gemm(problem, a.data(), b.data(), want.data());
              backend::Gemm(problem, a.data(), b.data(), got.data());
              for (size_t i = 0; i < want.size(); ++i)
                ASSERT_NEAR(got[i], want[i], k < 1000 ? 5e-5 : 2e-4) << m << " " << n << " " << k;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace portolan::kernels
