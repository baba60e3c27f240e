#pragma once

// Included by device/gpu_intrinsics.h only, which says what everything means. Here: CUDA, compiled by nvcc.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "device/host_device.h"
#include "device/stream.h"
#include "device/vec.h"

#define PORTOLAN_DEVICE __device__
#define PORTOLAN_CALL_SITE ::portolan::device::cuda::CallSite where = {}

namespace portolan::device::cuda {

inline constexpr int kWaveSize = 32;

struct CallSite {};
struct NoShared {};

template <typename T, int kCount>
struct alignas(16) SharedArray {
  T data[kCount];

  __device__ __forceinline__ T& operator[](int64_t index) { return data[index]; }
  template <int kWidth>
  __device__ __forceinline__ Vec<T, kWidth> LoadVec(int64_t index) const {
    return *reinterpret_cast<const Vec<T, kWidth>*>(data + index);
  }
  template <int kWidth>
  __device__ __forceinline__ void StoreVec(int64_t index, const Vec<T, kWidth>& vec) {
    *reinterpret_cast<Vec<T, kWidth>*>(data + index) = vec;
  }
  __device__ __forceinline__ T AtomicAdd(int64_t index, T addend) { return atomicAdd(data + index, addend); }
};

__device__ __forceinline__ int ThreadIndex() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int64_t BlockIndex() { return blockIdx.x; }
__device__ __forceinline__ int64_t BlockCount() { return gridDim.x; }

__device__ __forceinline__ int PopCount(uint64_t bits) { return __popcll(bits); }
__device__ __forceinline__ int CountTrailingZeros(uint64_t bits) { return __ffsll(static_cast<long long>(bits)) - 1; }

// The lanes of the own group of kLanes lanes, as the mask of a _sync operation.
template <int kLanes>
__device__ __forceinline__ unsigned GroupMask() {
  if constexpr (kLanes == kWaveSize) return 0xffffffffu;
  const unsigned first = threadIdx.x % kWaveSize / kLanes * kLanes;
  return ((1u << (kLanes % kWaveSize)) - 1u) << first;
}

__device__ __forceinline__ void SyncBlock(CallSite = {}) { __syncthreads(); }
template <int kLanes = kWaveSize>
__device__ __forceinline__ void SyncWave(CallSite = {}) {
  __syncwarp(GroupMask<kLanes>());
}
__device__ __forceinline__ uint64_t BallotBits(bool vote, CallSite) { return __ballot_sync(0xffffffffu, vote); }

template <int kLanes, typename T>
__device__ __forceinline__ T ShuffleLane(T value, int source, CallSite) {
  return __shfl_sync(GroupMask<kLanes>(), value, source, kLanes);
}
template <int kMask, int kLanes, typename T>
__device__ __forceinline__ T ShuffleXorLane(T value, CallSite) {
  return __shfl_xor_sync(GroupMask<kLanes>(), value, kMask, kLanes);
}

template <typename T>
__device__ __forceinline__ T AtomicAdd(T* address, T addend) {
  return atomicAdd(address, addend);
}
__device__ __forceinline__ void DeviceFence() { __threadfence(); }

template <int kWidth, typename T>
__device__ __forceinline__ Vec<T, kWidth> LoadVec(const T* address, CallSite = {}) {
  return *reinterpret_cast<const Vec<T, kWidth>*>(address);
}
template <int kWidth, typename T>
__device__ __forceinline__ void StoreVec(T* address, const Vec<T, kWidth>& vec, CallSite = {}) {
  *reinterpret_cast<Vec<T, kWidth>*>(address) = vec;
}

__device__ __forceinline__ float Exp(float x) { return expf(x); }
__device__ __forceinline__ float Log(float x) { return logf(x); }
__device__ __forceinline__ float Sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ float Floor(float x) { return floorf(x); }
__device__ __forceinline__ float Erf(float x) { return erff(x); }

// Ends the program with CUDA's own words: a launch or copy that fails is a fault of ours or of the machine.
inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::abort();
}
inline cudaStream_t NativeStream(Stream stream) { return static_cast<cudaStream_t>(stream.native); }

// Scratch memory of the device for the launches that follow on the stream; its end waits for nobody.
template <typename T>
class Scratch {
 public:
  Scratch(Stream stream, int64_t count) : stream_(stream) {
    const size_t bytes = sizeof(T) * static_cast<size_t>(count > 0 ? count : 1);
    CheckCuda(cudaMallocAsync(reinterpret_cast<void**>(&data_), bytes, NativeStream(stream)), "scratch memory");
  }
  ~Scratch() { CheckCuda(cudaFreeAsync(data_, NativeStream(stream_)), "scratch memory"); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  Stream stream_;
  T* data_ = nullptr;
};

// Waits for the stream, then copies.
template <typename T>
void CopyToHost(Stream stream, const T* from, int64_t count, T* to) {
  CheckCuda(cudaMemcpyAsync(to, from, sizeof(T) * static_cast<size_t>(count), cudaMemcpyDefault, NativeStream(stream)),
            "copy to the host");
  CheckCuda(cudaStreamSynchronize(NativeStream(stream)), "copy to the host");
}
// Waits until `from` may be changed again.
template <typename T>
void CopyToDevice(Stream stream, const T* from, int64_t count, T* to) {
  CheckCuda(cudaMemcpyAsync(to, from, sizeof(T) * static_cast<size_t>(count), cudaMemcpyDefault, NativeStream(stream)),
            "copy to the device");
  CheckCuda(cudaStreamSynchronize(NativeStream(stream)), "copy to the device");
}

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) Entry(const Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  kernel(shared);
}

template <typename Kernel>
void Launch(Stream stream, int64_t blocks, const Kernel& kernel) {
  if (blocks <= 0) return;
  Entry<Kernel><<<static_cast<unsigned>(blocks), Kernel::kThreads, 0, NativeStream(stream)>>>(kernel);
  CheckCuda(cudaGetLastError(), Kernel::kName);
}

}  // namespace portolan::device::cuda
