#include "kernels/cuda_rows.h"
#include "kernels/layer_norm/layer_norm.h"

namespace portolan::kernels::cuda {
namespace {

constexpr int kRowsPerBlock = 8;  // a wave a vector

__device__ __forceinline__ float WaveTotal(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

struct Moments {
  float mean, rstd;
};
template <typename T>
__device__ Moments MomentsOf(const T* x, int64_t width) {
  float sum = 0;
  for (int64_t n = threadIdx.x % 32; n < width; n += 32) sum += ToFloat(x[n]);
  const float mean = WaveTotal(sum) / static_cast<float>(width);
  float squares = 0;
  for (int64_t n = threadIdx.x % 32; n < width; n += 32) {
    const float d = ToFloat(x[n]) - mean;
    squares += d * d;
  }
  return {mean, rsqrtf(WaveTotal(squares) / static_cast<float>(width) + kLayerNormEpsilon)};
}

template <typename T>
__global__ void __launch_bounds__(32 * kRowsPerBlock)
    NormForward(int64_t vectors, int64_t tokens, int64_t width, Rows<const T> x, const float* gamma, const float* beta,
                Rows<T> y) {
  const int64_t vector = blockIdx.x * int64_t{kRowsPerBlock} + threadIdx.x / 32;
  if (vector >= vectors) return;
  const int64_t row = vector / tokens, first = vector % tokens * width;
  const T* in = x.data + row * x.stride + first;
  T* out = y.data + row * y.stride + first;
  const Moments m = MomentsOf(in, width);
  for (int64_t n = threadIdx.x % 32; n < width; n += 32) {
    FromFloat((ToFloat(in[n]) - m.mean) * m.rstd * gamma[n] + beta[n], out + n);
  }
}

// dx = rstd (g - mean(g) - h mean(g h)), g = dy gamma. The sums of dgamma and dbeta over a block's vectors go to
// partial [blocks, 2, width]: a lane keeps to its columns, so they are summed without exchange.
template <typename T>
__global__ void __launch_bounds__(32)
    NormBackward(int64_t vectors, int64_t vectors_per_block, int64_t tokens, int64_t width, Rows<const T> x,
                 const float* gamma, Rows<const T> dy, Rows<T> dx, float* partial) {
  float* dgamma = partial + blockIdx.x * 2 * width;
  float* dbeta = dgamma + width;
  for (int64_t n = threadIdx.x; n < 2 * width; n += 32) dgamma[n] = 0;
  __syncwarp();
  const int64_t begin = blockIdx.x * vectors_per_block;
  const int64_t end = begin + vectors_per_block < vectors ? begin + vectors_per_block : vectors;
  for (int64_t vector = begin; vector < end; ++vector) {
    const int64_t row = vector / tokens, first = vector % tokens * width;
    const T* in = x.data + row * x.stride + first;
    const T* slope = dy.data + row * dy.stride + first;
    T* out = dx.data + row * dx.stride + first;
    const Moments m = MomentsOf(in, width);
    float sum_g = 0, sum_gh = 0;
    for (int64_t n = threadIdx.x; n < width; n += 32) {
      const float g = ToFloat(slope[n]) * gamma[n];
      sum_g += g;
      sum_gh += g * (ToFloat(in[n]) - m.mean) * m.rstd;
    }
    const float mean_g = WaveTotal(sum_g) / static_cast<float>(width);
    const float mean_gh = WaveTotal(sum_gh) / static_cast<float>(width);
    for (int64_t n = threadIdx.x; n < width; n += 32) {
      const float h = (ToFloat(in[n]) - m.mean) * m.rstd, d = ToFloat(slope[n]);
      dgamma[n] += d * h;
      dbeta[n] += d;
      FromFloat(m.rstd * (d * gamma[n] - mean_g - h * mean_gh), out + n);
    }
  }
}

}  // namespace

template <typename T>
void LayerNormForward(int64_t rows, int64_t tokens, int64_t width, Rows<const T> x, const float* gamma,
                      const float* beta, Rows<T> y, device::Stream stream) {
  if (rows <= 0) return;
  NormForward<T>
      <<<static_cast<unsigned>(DivideUp(rows * tokens, kRowsPerBlock)), 32 * kRowsPerBlock, 0, Native(stream)>>>(
          rows * tokens, tokens, width, x, gamma, beta, y);
  CheckLaunch("layer norm");
}
template <typename T>
void LayerNormBackward(int64_t rows, int64_t tokens, int64_t width, Rows<const T> x, const float* gamma,
                       Rows<const T> dy, Rows<T> dx, float* dgamma, float* dbeta, float* partial,
                       device::Stream stream) {
  // As many blocks as there are shares of `rows`, which is what ColumnSumFloats counts.
  const int64_t blocks = DivideUp(rows, RowsPerShare(rows));
  NormBackward<T><<<static_cast<unsigned>(blocks), 32, 0, Native(stream)>>>(rows * tokens, RowsPerShare(rows) * tokens,
                                                                            tokens, width, x, gamma, dy, dx, partial);
  CheckLaunch("layer norm backward");
  LaunchAddShares<2>(rows, width, partial, {{dgamma, dbeta}}, stream);
}

#define PORTOLAN_FOR(T)                                                                                              \
  template void LayerNormForward<T>(int64_t, int64_t, int64_t, Rows<const T>, const float*, const float*, Rows<T>,   \
                                    device::Stream);                                                                 \
  template void LayerNormBackward<T>(int64_t, int64_t, int64_t, Rows<const T>, const float*, Rows<const T>, Rows<T>, \
                                     float*, float*, float*, device::Stream);
PORTOLAN_FOR(float)
PORTOLAN_FOR(Bf16)
#undef PORTOLAN_FOR

}  // namespace portolan::kernels::cuda
