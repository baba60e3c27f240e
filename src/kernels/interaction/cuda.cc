#include "kernels/cuda_rows.h"
#include "kernels/interaction/interaction.h"

// A block takes a sample, whose vectors it holds in shared memory.
namespace portolan::kernels::cuda {
namespace {

constexpr int kBlock = 128;

// Place of the pair (i, j), i < j, in the strict upper triangle row by row.
__device__ __forceinline__ int PlaceOf(int i, int j, int features) {
  return i * features - i * (i + 1) / 2 + j - i - 1;
}

template <typename T>
__global__ void __launch_bounds__(kBlock) InteractForward(DotInteractionShape shape, const T* x, T* out) {
  extern __shared__ float vectors[];  // [features, dim + 1]
  const int features = static_cast<int>(shape.features), dim = static_cast<int>(shape.dim);
  const T* sample = x + blockIdx.x * shape.x_stride;
  T* row = out + blockIdx.x * shape.out_stride;
  for (int n = threadIdx.x; n < features * dim; n += kBlock)
    vectors[n / dim * (dim + 1) + n % dim] = ToFloat(sample[n]);
  __syncthreads();
  for (int d = threadIdx.x; d < dim; d += kBlock) row[d] = sample[d];
  const int pairs = features * (features - 1) / 2;
  for (int64_t n = dim + pairs + threadIdx.x; n < shape.out_width; n += kBlock) FromFloat(0, row + n);
  for (int n = threadIdx.x; n < features * features; n += kBlock) {
    const int i = n / features, j = n % features;
    if (i >= j) continue;
    float sum = 0;
    for (int d = 0; d < dim; ++d) sum += vectors[i * (dim + 1) + d] * vectors[j * (dim + 1) + d];
    FromFloat(sum, row + dim + PlaceOf(i, j, features));
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    InteractBackward(DotInteractionShape shape, const T* x, const T* dout, T* dx) {
  extern __shared__ float vectors[];  // [features, dim], then [pairs] slopes
  const int features = static_cast<int>(shape.features), dim = static_cast<int>(shape.dim);
  const int pairs = features * (features - 1) / 2;
  float* slopes = vectors + features * dim;
  const T* sample = x + blockIdx.x * shape.x_stride;
  const T* row = dout + blockIdx.x * shape.out_stride;
  T* gradient = dx + blockIdx.x * shape.x_stride;
  for (int n = threadIdx.x; n < features * dim; n += kBlock) vectors[n] = ToFloat(sample[n]);
  for (int n = threadIdx.x; n < pairs; n += kBlock) slopes[n] = ToFloat(row[dim + n]);
  __syncthreads();
  for (int n = threadIdx.x; n < features * dim; n += kBlock) {
    const int i = n / dim, d = n % dim;
    float sum = i == 0 ? ToFloat(row[d]) : 0.0f;
    for (int j = 0; j < features; ++j) {
      if (j != i) sum += slopes[i < j ? PlaceOf(i, j, features) : PlaceOf(j, i, features)] * vectors[j * dim + d];
    }
    FromFloat(sum, gradient + n);
  }
}

template <typename Kernel>
void Raise(Kernel kernel, int64_t bytes) {
  device::cuda::CheckCuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "shared memory of the dot interaction");
}

}  // namespace

template <typename T>
void DotInteractionForward(const DotInteractionShape& shape, const T* x, T* out, device::Stream stream) {
  if (shape.batch <= 0) return;
  const int64_t bytes = 4 * shape.features * (shape.dim + 1);
  Raise(InteractForward<T>, bytes);
  InteractForward<T>
      <<<static_cast<unsigned>(shape.batch), kBlock, static_cast<size_t>(bytes), Native(stream)>>>(shape, x, out);
  CheckLaunch("dot interaction");
}
template <typename T>
void DotInteractionBackward(const DotInteractionShape& shape, const T* x, const T* dout, T* dx, device::Stream stream) {
  if (shape.batch <= 0) return;
  const int64_t bytes = 4 * (shape.features * shape.dim + shape.features * (shape.features - 1) / 2);
  Raise(InteractBackward<T>, bytes);
  InteractBackward<T>
      <<<static_cast<unsigned>(shape.batch), kBlock, static_cast<size_t>(bytes), Native(stream)>>>(shape, x, dout, dx);
  CheckLaunch("dot interaction backward");
}

template void DotInteractionForward<float>(const DotInteractionShape&, const float*, float*, device::Stream);
template void DotInteractionForward<Bf16>(const DotInteractionShape&, const Bf16*, Bf16*, device::Stream);
template void DotInteractionBackward<float>(const DotInteractionShape&, const float*, const float*, float*,
                                            device::Stream);
template void DotInteractionBackward<Bf16>(const DotInteractionShape&, const Bf16*, const Bf16*, Bf16*, device::Stream);

}  // namespace portolan::kernels::cuda
