#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "device/gpu_intrinsics.h"
#include "kernels/cuda_kernels.h"
#include "kernels/number_formats.h"

// For kernels compiled by nvcc: numbers of T eight at a time (16 bytes of bf16, twice 16 of fp32), and the frame of the
// kernels that visit every element of a tensor once.
namespace portolan::kernels::cuda {

inline int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <int kWidth>
struct Numbers {
  float value[kWidth];
};

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ __forceinline__ void FromFloat(float x, float* to) { *to = x; }
__device__ __forceinline__ void FromFloat(float x, Bf16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

__device__ __forceinline__ Numbers<8> Unpack(const uint4& words) {
  Numbers<8> n;
  const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    n.value[2 * i] = __uint_as_float(word[i] << 16);
    n.value[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
  return n;
}
__device__ __forceinline__ unsigned Pack2(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  unsigned bits;
  memcpy(&bits, &pair, 4);
  return bits;
}

template <int kWidth, typename T>
__device__ __forceinline__ Numbers<kWidth> LoadNumbers(const T* from) {
  Numbers<kWidth> n;
  if constexpr (kWidth == 8 && sizeof(T) == 2) {
    n = Unpack(*reinterpret_cast<const uint4*>(from));
  } else if constexpr (kWidth % 4 == 0 && sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < kWidth; k += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + k);
      n.value[k] = v.x, n.value[k + 1] = v.y, n.value[k + 2] = v.z, n.value[k + 3] = v.w;
    }
  } else if constexpr (kWidth == 4 && sizeof(T) == 2) {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    n.value[0] = __uint_as_float(v.x << 16), n.value[1] = __uint_as_float(v.x & 0xffff0000u);
    n.value[2] = __uint_as_float(v.y << 16), n.value[3] = __uint_as_float(v.y & 0xffff0000u);
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) n.value[k] = ToFloat(from[k]);
  }
  return n;
}

template <int kWidth, typename T>
__device__ __forceinline__ void StoreNumbers(const Numbers<kWidth>& n, T* to) {
  if constexpr (kWidth == 8 && sizeof(T) == 2) {
    *reinterpret_cast<uint4*>(to) = make_uint4(Pack2(n.value[0], n.value[1]), Pack2(n.value[2], n.value[3]),
                                               Pack2(n.value[4], n.value[5]), Pack2(n.value[6], n.value[7]));
  } else if constexpr (kWidth % 4 == 0 && sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < kWidth; k += 4) {
      *reinterpret_cast<float4*>(to + k) = make_float4(n.value[k], n.value[k + 1], n.value[k + 2], n.value[k + 3]);
    }
  } else if constexpr (kWidth == 4 && sizeof(T) == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(Pack2(n.value[0], n.value[1]), Pack2(n.value[2], n.value[3]));
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) FromFloat(n.value[k], to + k);
  }
}

// Four numbers that are used once: the cache gives them up first.
__device__ __forceinline__ Numbers<4> LoadStreamed(const float* from) {
  const float4 v = __ldcs(reinterpret_cast<const float4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ __forceinline__ void StoreStreamed(const Numbers<4>& n, float* to) {
  __stcs(reinterpret_cast<float4*>(to), make_float4(n.value[0], n.value[1], n.value[2], n.value[3]));
}

// May rows of T be read eight numbers at a time?
template <typename T>
bool InEights(int64_t width, const Rows<T>& rows) {
  return rows.data == nullptr ||
         (width % 8 == 0 && rows.stride % 8 == 0 && reinterpret_cast<uintptr_t>(rows.data) % 16 == 0);
}
inline bool InEights(const float* values) { return reinterpret_cast<uintptr_t>(values) % 16 == 0; }

// A block is 32 groups of columns by 8 rows and walks down its share of the rows. Column sums of a share go to
// partial [shares, kSums, width].
constexpr int kVisitLanes = 32, kVisitRows = 8;
constexpr int64_t kLeastShare = 64, kMostShares = 128;
inline int64_t RowsPerShare(int64_t rows) {
  const int64_t even = DivideUp(DivideUp(rows, kMostShares), kVisitRows) * kVisitRows;
  return even > kLeastShare ? even : kLeastShare;
}

// Body: kSums; `Visit(row, column, sums)` handles kWidth columns, and adds to sums[kSums].
template <int kWidth, typename Body>
__global__ void __launch_bounds__(kVisitLanes* kVisitRows)
    VisitRows(const Body body, int64_t rows, int64_t width, int64_t rows_per_share, float* partial) {
  constexpr int kSums = Body::kSums, kSlots = kSums > 0 ? kSums : 1;
  const int lane = threadIdx.x % kVisitLanes, row_in_step = threadIdx.x / kVisitLanes;
  const int64_t column = (blockIdx.x * static_cast<int64_t>(kVisitLanes) + lane) * kWidth;
  const int64_t first = blockIdx.y * rows_per_share;
  const int64_t end = first + rows_per_share < rows ? first + rows_per_share : rows;
  Numbers<kWidth> sums[kSlots] = {};
  if (column < width) {
#pragma unroll 2
    for (int64_t row = first + row_in_step; row < end; row += kVisitRows) body.Visit(row, column, sums);
  }
  if constexpr (kSums > 0) {
    __shared__ float shared[kVisitRows][kVisitLanes * kWidth + 1];
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kWidth; ++k) shared[row_in_step][k * kVisitLanes + lane] = sums[s].value[k];
      __syncthreads();
      for (int n = threadIdx.x; n < kVisitLanes * kWidth; n += kVisitLanes * kVisitRows) {
        const int64_t place =
            blockIdx.x * static_cast<int64_t>(kVisitLanes * kWidth) + n % kVisitLanes * kWidth + n / kVisitLanes;
        float total = 0;
#pragma unroll
        for (int r = 0; r < kVisitRows; ++r) total += shared[r][n];
        if (place < width) partial[(blockIdx.y * static_cast<int64_t>(kSums) + s) * width + place] = total;
      }
    }
  }
}

// out[s][column] = sum of partial over the shares, in order within each of eight strands, then the strands in order.
template <int kSums>
struct SumTargets {
  float* out[kSums];
};
template <int kSums>
__global__ void AddShares(const float* partial, int64_t shares, int64_t width, SumTargets<kSums> targets) {
  __shared__ float shared[8][33];
  const int lane = threadIdx.x % 32, strand = threadIdx.x / 32;
  const int64_t i = blockIdx.x * int64_t{32} + lane, count = kSums * width;
  float sum = 0;
  if (i < count) {
    for (int64_t share = strand; share < shares; share += 8) sum += partial[share * count + i];
  }
  shared[strand][lane] = sum;
  __syncthreads();
  if (strand != 0 || i >= count) return;
  for (int s = 1; s < 8; ++s) sum += shared[s][lane];
  targets.out[i / width][i % width] = sum;
}

inline cudaStream_t Native(device::Stream stream) { return static_cast<cudaStream_t>(stream.native); }
inline void CheckLaunch(const char* kernel) { device::cuda::CheckCuda(cudaGetLastError(), kernel); }

// Body8 and Body1 are one body for eight columns and for one.
template <int kWidth, typename Body>
void LaunchVisit(const char* name, int64_t rows, int64_t width, const Body& body, float* partial,
                 device::Stream stream) {
  if (rows <= 0 || width <= 0) return;
  const int64_t share = RowsPerShare(rows);
  const dim3 grid(static_cast<unsigned>(DivideUp(width, kVisitLanes * kWidth)),
                  static_cast<unsigned>(DivideUp(rows, share)));
  VisitRows<kWidth, Body><<<grid, kVisitLanes * kVisitRows, 0, Native(stream)>>>(body, rows, width, share, partial);
  CheckLaunch(name);
}
template <int kSums>
void LaunchAddShares(int64_t rows, int64_t width, const float* partial, SumTargets<kSums> targets,
                     device::Stream stream) {
  AddShares<kSums><<<static_cast<unsigned>(DivideUp(kSums * width, 32)), 256, 0, Native(stream)>>>(
      partial, DivideUp(rows, RowsPerShare(rows)), width, targets);
  CheckLaunch("column sums");
}

}  // namespace portolan::kernels::cuda
