#include "kernels/cuda_rows.h"
#include "kernels/loss/loss.h"

namespace portolan::kernels::cuda {
namespace {

constexpr int kBlock = 1024;

// Sum over a block of kBlock threads, in thread 0; every thread calls it.
__device__ double BlockTotal(double value) {
  __shared__ double shared[kBlock / 32];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  __syncthreads();  // of the call before
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0) {
    for (int wave = 0; wave < kBlock / 32; ++wave) total += shared[wave];
  }
  return total;
}

// partial[block] = sum of the losses of its samples, kBlock of them in every grid's width.
__global__ void __launch_bounds__(kBlock) Bce(int64_t rows, const float* logits, const float* labels,
                                              const float* weights, float scale, float* dlogits, double* partial) {
  double sum = 0;
  for (int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x; i < rows; i += gridDim.x * int64_t{kBlock}) {
    const float z = logits[i], label = labels[i];
    const float weight = weights != nullptr ? weights[i] : 1.0f;
    const float small = expf(-fabsf(z));
    sum += weight * (fmaxf(z, 0.0f) - z * label + log1pf(small));
    if (dlogits != nullptr) dlogits[i] = scale * weight * ((z < 0 ? small : 1.0f) / (1.0f + small) - label);
  }
  sum = BlockTotal(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(kBlock) TakeLoss(const double* partial, int count, StepControl* control) {
  const double sum = BlockTotal(threadIdx.x < count ? partial[threadIdx.x] : 0);
  if (threadIdx.x != 0) return;
  // fmaxf drops a NaN logit, but z * label keeps it; an infinite one gives NaN or infinity.
  control->loss = sum;
  control->squared_norm = 0;
  control->gradient_scale = 1;
  if (!isfinite(sum)) control->apply = 0;
}
// Blocks for one visit of `rows` numbers, each with a partial sum.
int SumBlocks(int64_t rows) {
  const int64_t blocks = DivideUp(rows, kBlock);
  return static_cast<int>(blocks < 1 ? 1 : blocks < kNormPartials ? blocks : kNormPartials);
}

// partial[block] = sum of squares; the first half of the blocks takes the dense gradients, the second the rows.
__global__ void __launch_bounds__(kBlock)
    SquareParts(int64_t count, const float* gradients, const double* row_squares, int64_t row_count, double* partial) {
  const int64_t half = kNormPartials / 2;
  double sum = 0;
  if (blockIdx.x < half) {
    for (int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x; i < count; i += half * kBlock) {
      sum += static_cast<double>(gradients[i]) * gradients[i];
    }
  } else if (row_squares != nullptr) {
    for (int64_t i = (blockIdx.x - half) * kBlock + threadIdx.x; i < row_count; i += half * kBlock) {
      sum += row_squares[i];
    }
  }
  sum = BlockTotal(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(kBlock) DecideScale(const double* partial, double clip_norm, StepControl* control) {
  const double sum = BlockTotal(partial[threadIdx.x]);
  if (threadIdx.x != 0) return;
  control->squared_norm = sum;
  if (!isfinite(sum)) control->apply = 0;
  const double norm = sqrt(sum);
  control->gradient_scale = norm > clip_norm ? static_cast<float>(clip_norm / norm) : 1.0f;
}
static_assert(kNormPartials == kBlock, "one thread a partial sum");

// A wave takes a row at a time; kWidth numbers a lane.
template <int kWidth, typename T>
__global__ void __launch_bounds__(256)
    Logits(int64_t rows, int64_t width, Rows<const T> x, const float* w, const float* bias, float* logits) {
  const int64_t row = blockIdx.x * int64_t{8} + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t column = threadIdx.x % 32 * kWidth; column < width; column += 32 * kWidth) {
    const auto values = LoadNumbers<kWidth>(x.data + row * x.stride + column);
    for (int k = 0; k < kWidth; ++k) sum += values.value[k] * w[column + k];
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (threadIdx.x % 32 == 0) logits[row] = sum + bias[0];
}

// dx = dlogits w; column sums of dlogits x.
template <int kWidth, typename T>
struct LogitGradient {
  static constexpr int kSums = 1;
  Rows<const T> x;
  const float* w;
  const float* dlogits;
  Rows<T> dx;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>* sums) const {
    const float slope = dlogits[row];
    const auto values = LoadNumbers<kWidth>(x.data + row * x.stride + column);
    Numbers<kWidth> out;
    for (int k = 0; k < kWidth; ++k) {
      sums[0].value[k] += slope * values.value[k];
      out.value[k] = slope * w[column + k];
    }
    if (dx.data != nullptr) StoreNumbers(out, dx.data + row * dx.stride + column);
  }
};
__global__ void __launch_bounds__(kBlock) SumParts(int64_t count, const float* values, double* partial) {
  double sum = 0;
  for (int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x; i < count; i += gridDim.x * int64_t{kBlock}) {
    sum += values[i];
  }
  sum = BlockTotal(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(kBlock) AddParts(const double* partial, int count, float* out) {
  const double sum = BlockTotal(threadIdx.x < count ? partial[threadIdx.x] : 0);
  if (threadIdx.x == 0) *out = static_cast<float>(sum);
}

}  // namespace

void LossAndGradient(int64_t rows, const float* logits, const float* labels, const float* weights, float gradient_scale,
                     float* dlogits, double* partial, StepControl* control, device::Stream stream) {
  const int blocks = SumBlocks(rows);
  Bce<<<blocks, kBlock, 0, Native(stream)>>>(rows, logits, labels, weights, gradient_scale, dlogits, partial);
  CheckLaunch("loss");
  TakeLoss<<<1, kBlock, 0, Native(stream)>>>(partial, blocks, control);
  CheckLaunch("loss");
}

void ClipScale(int64_t count, const float* gradients, const double* row_squares, int64_t row_count, double clip_norm,
               double* partial, StepControl* control, device::Stream stream) {
  SquareParts<<<kNormPartials, kBlock, 0, Native(stream)>>>(count, gradients, row_squares, row_count, partial);
  CheckLaunch("gradient norm");
  DecideScale<<<1, kBlock, 0, Native(stream)>>>(partial, clip_norm, control);
  CheckLaunch("gradient norm");
}

template <typename T>
void LogitForward(int64_t rows, int64_t width, Rows<const T> x, const float* w, const float* bias, float* logits,
                  device::Stream stream) {
  if (rows <= 0) return;
  const auto blocks = static_cast<unsigned>(DivideUp(rows, 8));
  if (InEights(width, x)) {
    Logits<8, T><<<blocks, 256, 0, Native(stream)>>>(rows, width, x, w, bias, logits);
  } else {
    Logits<1, T><<<blocks, 256, 0, Native(stream)>>>(rows, width, x, w, bias, logits);
  }
  CheckLaunch("logits");
}
template <typename T>
void LogitBackward(int64_t rows, int64_t width, Rows<const T> x, const float* w, const float* dlogits, Rows<T> dx,
                   float* dw, float* dbias, float* partial, double* sums, device::Stream stream) {
  if (InEights(width, x) && InEights(width, Rows<const T>{dx.data, dx.stride})) {
    LaunchVisit<8>("logits backward", rows, width, LogitGradient<8, T>{x, w, dlogits, dx}, partial, stream);
  } else {
    LaunchVisit<1>("logits backward", rows, width, LogitGradient<1, T>{x, w, dlogits, dx}, partial, stream);
  }
  LaunchAddShares<1>(rows, width, partial, {{dw}}, stream);
  const int blocks = SumBlocks(rows);
  SumParts<<<blocks, kBlock, 0, Native(stream)>>>(rows, dlogits, sums);
  CheckLaunch("logits backward");
  AddParts<<<1, kBlock, 0, Native(stream)>>>(sums, blocks, dbias);
  CheckLaunch("logits backward");
}

#define PORTOLAN_FOR(T)                                                                                                \
  template void LogitForward<T>(int64_t, int64_t, Rows<const T>, const float*, const float*, float*, device::Stream);  \
  template void LogitBackward<T>(int64_t, int64_t, Rows<const T>, const float*, const float*, Rows<T>, float*, float*, \
                                 float*, double*, device::Stream);
PORTOLAN_FOR(float)
PORTOLAN_FOR(Bf16)
#undef PORTOLAN_FOR

}  // namespace portolan::kernels::cuda
