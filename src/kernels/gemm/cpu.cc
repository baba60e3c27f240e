#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "kernels/gemm/cpu_bf16.h"
#include "kernels/gemm/gemm.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::cpu {
namespace {

// How D is cut into parts that one thread computes alone. By the problem only, so that sums do not depend on the number
// of threads: tiles of D, and where these are few, ranges of K whose products are added in order afterwards.
struct Cut {
  int64_t tile_rows = 0, tile_columns = 0, row_tiles = 0, column_tiles = 0;
  int64_t k_parts = 1;
  int64_t Tiles() const { return row_tiles * column_tiles; }
};

Cut CutOf(const GemmProblem& problem) {
  constexpr int64_t kMaxTile = 256, kMinTileRows = 64, kMinPartOfK = 256;
  constexpr int64_t kWantedTiles = 8;
  Cut cut;
  const int64_t share = (problem.m / kWantedTiles + kMinTileRows - 1) / kMinTileRows * kMinTileRows;
  cut.tile_rows = std::clamp(share, kMinTileRows, kMaxTile);
  cut.tile_columns = kMaxTile;
  cut.row_tiles = (problem.m + cut.tile_rows - 1) / cut.tile_rows;
  cut.column_tiles = (problem.n + kMaxTile - 1) / kMaxTile;
  if (problem.k < 2 * kMinPartOfK || cut.Tiles() >= kWantedTiles) return cut;
  // Long sums over small outputs: few rows a tile would read B again for each.
  cut.tile_rows = kMaxTile;
  cut.row_tiles = (problem.m + kMaxTile - 1) / kMaxTile;
  if (cut.Tiles() < kWantedTiles) {
    cut.k_parts = std::min((kWantedTiles + cut.Tiles() - 1) / cut.Tiles(), problem.k / kMinPartOfK);
  }
  return cut;
}

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

// d = beta d + the parts, in order.
PORTOLAN_CPU_CLONES void AddParts(int64_t count, int64_t parts, int64_t stride, const float* part, float beta,
                                  float* __restrict d) {
  for (int64_t i = 0; i < count; ++i) d[i] = beta == 0 ? part[i] : beta * d[i] + part[i];
  for (int64_t p = 1; p < parts; ++p) {
    for (int64_t i = 0; i < count; ++i) d[i] += part[p * stride + i];
  }
}

// Memory that stays from call to call.
float* PartsBuffer(int64_t floats) {
  static thread_local std::unique_ptr<float[]> memory;
  static thread_local int64_t held = 0;
  if (floats > held) {
    memory.reset(new float[static_cast<size_t>(floats)]);
    held = floats;
  }
  return memory.get();
}

// Calls multiply(i, j, k, m, n, depth, beta, d, ldd) for every part of the problem from several threads: the product of
// rows i.. and columns j.. over k.., onto d.
template <typename Multiply>
void ForEachPart(const GemmProblem& problem, const Cut& cut, float* d, Multiply multiply) {
  const int64_t tasks = cut.Tiles() * cut.k_parts, size = problem.m * problem.n;
  float* parts = cut.k_parts > 1 ? PartsBuffer(cut.k_parts * size) : nullptr;
  // Two iterations at least keep the region parallel, in which oneDNN takes one thread a call.
#pragma omp parallel for schedule(dynamic)
  for (int64_t task = 0; task < std::max<int64_t>(tasks, 2); ++task) {
    if (task >= tasks) continue;
    const int64_t tile = task % cut.Tiles(), part = task / cut.Tiles();
    const int64_t i = tile % cut.row_tiles * cut.tile_rows, j = tile / cut.row_tiles * cut.tile_columns;
    const int64_t m = std::min(cut.tile_rows, problem.m - i), n = std::min(cut.tile_columns, problem.n - j);
    const int64_t k = problem.k * part / cut.k_parts, depth = problem.k * (part + 1) / cut.k_parts - k;
    if (parts == nullptr) {
      multiply(i, j, k, m, n, depth, problem.beta, d + i * problem.ldd + j, problem.ldd);
    } else {
      multiply(i, j, k, m, n, depth, 0.0f, parts + part * size + i * problem.n + j, problem.n);
    }
  }
  if (parts == nullptr) return;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < problem.m; ++i) {
    AddParts(problem.n, cut.k_parts, size, parts + i * problem.n, problem.beta, d + i * problem.ldd);
  }
}

void TiledSgemm(const GemmProblem& problem, const float* a, int64_t lda, const float* b, int64_t ldb, float* d) {
  const bool a_transposed = problem.a_transposed == Transpose::kYes,
             b_transposed = problem.b_transposed == Transpose::kYes;
  ForEachPart(
      problem, CutOf(problem), d,
      [&](int64_t i, int64_t j, int64_t k, int64_t m, int64_t n, int64_t depth, float beta, float* to, int64_t ldd) {
        const float* left = a + (a_transposed ? k * lda + i : i * lda + k);
        const float* right = b + (b_transposed ? j * ldb + k : k * ldb + j);
        const dnnl_status_t status = dnnl_sgemm(a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', m, n, depth, 1.0f,
                                                left, lda, right, ldb, beta, to, ldd);
        PORTOLAN_CHECK(status == dnnl_success, "oneDNN refused a product");
      });
}

void RoundedSgemm(const GemmProblem& problem, const float* a, const float* b, float* d) {
  const bool a_transposed = problem.a_transposed == Transpose::kYes,
             b_transposed = problem.b_transposed == Transpose::kYes;
  const int64_t a_columns = a_transposed ? problem.m : problem.k, b_columns = b_transposed ? problem.k : problem.n;
  const std::vector<float> left = Rounded(a_transposed ? problem.k : problem.m, a_columns, problem.lda, a);
  const std::vector<float> right = Rounded(b_transposed ? problem.n : problem.k, b_columns, problem.ldb, b);
  TiledSgemm(problem, left.data(), a_columns, right.data(), b_columns, d);
}

}  // namespace

void Gemm(const GemmProblem& problem, const float* a, const float* b, float* d) {
  if (problem.m == 0 || problem.n == 0) return;
  if (problem.format == GemmFormat::kFp32) return TiledSgemm(problem, a, problem.lda, b, problem.ldb, d);
  if (!HasBf16Products()) return RoundedSgemm(problem, a, b, d);
  const Bf16Operands operands(problem, a, b);
  Cut cut = CutOf(problem);
  // The library adds to D in no format but its own.
  if (problem.beta == 0 || cut.k_parts > 1) {
    ForEachPart(problem, cut, d,
                [&](int64_t i, int64_t j, int64_t k, int64_t m, int64_t n, int64_t depth, float, float* to,
                    int64_t ldd) { operands.Multiply(i, j, k, m, n, depth, to, ldd); });
    return;
  }
  GemmProblem product = problem;
  product.beta = 0;
  product.ldd = problem.n;
  float* sum = PartsBuffer(problem.m * problem.n);
  ForEachPart(product, cut, sum,
              [&](int64_t i, int64_t j, int64_t k, int64_t m, int64_t n, int64_t depth, float, float* to, int64_t ldd) {
                operands.Multiply(i, j, k, m, n, depth, to, ldd);
              });
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < problem.m; ++i) {
    AddParts(problem.n, 1, 0, sum + i * problem.n, problem.beta, d + i * problem.ldd);
  }
}

}  // namespace portolan::kernels::cpu
