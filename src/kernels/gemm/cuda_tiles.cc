#include "kernels/cuda_rows.h"
#include "kernels/gemm/cuda_gemm.h"

namespace portolan::kernels::cuda {
namespace {

// A block computes kTile x kTile numbers of D, a thread 4 x 4 of them, kDepth of K at a time.
constexpr int kTile = 64, kDepth = 16, kOwn = 4, kThreads = 256;

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    Tiles(CudaProduct p, const In* a, const In* b, const Out* c, Out* d, const Out* bias) {
  __shared__ float left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int64_t first_row = blockIdx.y * int64_t{kTile}, first_column = blockIdx.x * int64_t{kTile};
  const int row = threadIdx.x / (kTile / kOwn) * kOwn, column = threadIdx.x % (kTile / kOwn) * kOwn;
  const bool a_transposed = p.a_transposed == Transpose::kYes, b_transposed = p.b_transposed == Transpose::kYes;
  float sums[kOwn][kOwn] = {};
  for (int64_t first = 0; first < p.k; first += kDepth) {
    for (int n = threadIdx.x; n < kTile * kDepth; n += kThreads) {
      // Neighbouring threads read neighbouring numbers of the stored row.
      const int ai = a_transposed ? n % kTile : n / kDepth, ak = a_transposed ? n / kTile : n % kDepth;
      const int64_t i = first_row + ai, i_depth = first + ak;
      left[ak][ai] =
          i < p.m && i_depth < p.k ? ToFloat(a[a_transposed ? i_depth * p.lda + i : i * p.lda + i_depth]) : 0;
      const int bj = b_transposed ? n / kDepth : n % kTile, bk = b_transposed ? n % kDepth : n / kTile;
      const int64_t j = first_column + bj, j_depth = first + bk;
      right[bk][bj] =
          j < p.n && j_depth < p.k ? ToFloat(b[b_transposed ? j * p.ldb + j_depth : j_depth * p.ldb + j]) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < kDepth; ++depth) {
      for (int r = 0; r < kOwn; ++r) {
        for (int s = 0; s < kOwn; ++s) sums[r][s] += left[depth][row + r] * right[depth][column + s];
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < kOwn; ++r) {
    for (int s = 0; s < kOwn; ++s) {
      const int64_t i = first_row + row + r, j = first_column + column + s;
      if (i >= p.m || j >= p.n) continue;
      float value = sums[r][s];
      if (p.beta != 0) value += p.beta * ToFloat(c[i * p.ldd + j]);
      if (p.epilogue != Epilogue::kNone) value += ToFloat(bias[j]);
      if (p.epilogue == Epilogue::kBiasRelu) value = value > 0 ? value : 0;
      FromFloat(value, d + i * p.ldd + j);
    }
  }
}

template <typename In, typename Out>
void Launch(const CudaProduct& p, const void* a, const void* b, const void* c, void* d, const void* bias,
            device::Stream stream) {
  if (p.m <= 0 || p.n <= 0) return;
  const dim3 grid(static_cast<unsigned>(DivideUp(p.n, kTile)), static_cast<unsigned>(DivideUp(p.m, kTile)));
  Tiles<In, Out><<<grid, kThreads, 0, Native(stream)>>>(p, static_cast<const In*>(a), static_cast<const In*>(b),
                                                        static_cast<const Out*>(c), static_cast<Out*>(d),
                                                        static_cast<const Out*>(bias));
  CheckLaunch("product");
}

}  // namespace

void TiledProduct(const CudaProduct& product, const void* a, const void* b, const void* c, void* d, const void* bias,
                  device::Stream stream) {
  if (product.math != ProductMath::kBf16) return Launch<float, float>(product, a, b, c, d, bias, stream);
  if (product.fp32_out) return Launch<Bf16, float>(product, a, b, c, d, bias, stream);
  return Launch<Bf16, Bf16>(product, a, b, c, d, bias, stream);
}

}  // namespace portolan::kernels::cuda
