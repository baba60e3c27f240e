#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "kernels/gemm/gemm.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::cpu {
namespace {

// Tiles of D that one thread computes alone. Fixed, so that sums do not depend on the number of threads.
constexpr int64_t kTileRows = 256;
constexpr int64_t kTileColumns = 256;

PORTOLAN_CPU_CLONES void RoundRow(int64_t count, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Bf16ToFloat(FloatToBf16(from[i]));
}

// A dense copy of `rows` stored rows with their numbers rounded to bf16.
std::vector<float> Rounded(int64_t rows, int64_t columns, int64_t stride, const float* values) {
  std::vector<float> copy(static_cast<size_t>(rows * columns));
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) RoundRow(columns, values + r * stride, copy.data() + r * columns);
  return copy;
}

void TiledSgemm(const GemmProblem& problem, const float* a, int64_t lda, const float* b, int64_t ldb, float* d) {
  const bool a_transposed = problem.a_transposed == Transpose::kYes,
             b_transposed = problem.b_transposed == Transpose::kYes;
  const int64_t row_tiles = (problem.m + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (problem.n + kTileColumns - 1) / kTileColumns;
  int failed = 0;
  // Two iterations at least keep the region parallel, in which oneDNN takes one thread a call.
#pragma omp parallel for schedule(dynamic) reduction(+ : failed)
  for (int64_t tile = 0; tile < std::max<int64_t>(row_tiles * column_tiles, 2); ++tile) {
    if (tile >= row_tiles * column_tiles) continue;
    const int64_t i = tile % row_tiles * kTileRows, j = tile / row_tiles * kTileColumns;
    const int64_t m = std::min(kTileRows, problem.m - i), n = std::min(kTileColumns, problem.n - j);
    const float* left = a + (a_transposed ? i : i * lda);
    const float* right = b + (b_transposed ? j * ldb : j);
    failed += dnnl_sgemm(a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', m, n, problem.k, 1.0f, left, lda, right,
                         ldb, problem.beta, d + i * problem.ldd + j, problem.ldd) == dnnl_success
                  ? 0
                  : 1;
  }
  PORTOLAN_CHECK(failed == 0, "oneDNN refused a product");
}

}  // namespace

void Gemm(const GemmProblem& problem, const float* a, const float* b, float* d) {
  if (problem.m == 0 || problem.n == 0) return;
  if (problem.format == GemmFormat::kFp32) return TiledSgemm(problem, a, problem.lda, b, problem.ldb, d);
  const bool a_transposed = problem.a_transposed == Transpose::kYes,
             b_transposed = problem.b_transposed == Transpose::kYes;
  const int64_t a_columns = a_transposed ? problem.m : problem.k, b_columns = b_transposed ? problem.k : problem.n;
  const std::vector<float> left = Rounded(a_transposed ? problem.k : problem.m, a_columns, problem.lda, a);
  const std::vector<float> right = Rounded(b_transposed ? problem.n : problem.k, b_columns, problem.ldb, b);
  TiledSgemm(problem, left.data(), a_columns, right.data(), b_columns, d);
}

}  // namespace portolan::kernels::cpu
