#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CUDA_CHECK(call)                                                                                  \
  do {                                                                                                    \
    const cudaError_t cuda_error = (call);                                                                \
    if (cuda_error != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cuda_error)); \
      std::exit(1);                                                                                       \
    }                                                                                                     \
  } while (false)

namespace measure {

constexpr int kSamples = 9;

struct Spread {
  double median_s = 0;
  double min_s = 0;
  double max_s = 0;
};

inline Spread SpreadOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// Device time of one launch, start to start: `repeats` launches in one CUDA graph, launched kSamples times after a
// warm-up. launch(stream, i) enqueues the i-th; it should rotate its buffers by i where caches must be cold.
template <typename Launch>
Spread TimeInGraph(int repeats, Launch launch) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < repeats; ++i) launch(stream, i);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin;
  cudaEvent_t end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  std::vector<double> samples;
  for (int sample = -2; sample < kSamples; ++sample) {
    CUDA_CHECK(cudaEventRecord(begin, stream));
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaEventRecord(end, stream));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (sample >= 0) samples.push_back(milliseconds * 1e-3 / repeats);
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return SpreadOf(samples);
}

// The JSON file: one record a line.
class Report {
 public:
  explicit Report(FILE* file) : file_(file) {}
  // `fields` is printf-formatted JSON members without braces.
  __attribute__((format(printf, 4, 5))) void Add(const char* bench, const Spread& spread, const char* fields, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, fields);
    std::vsnprintf(text, sizeof(text), fields, arguments);
    va_end(arguments);
    std::fprintf(file_,
                 "%s\n    {\"bench\": \"%s\", %s, \"seconds\": %.4e, \"seconds_min\": %.4e, \"seconds_max\": %.4e}",
                 first_ ? "" : ",", bench, text, spread.median_s, spread.min_s, spread.max_s);
    std::printf("%-18s %10.2f us  %s\n", bench, spread.median_s * 1e6, text);
    std::fflush(stdout);
    first_ = false;
  }

 private:
  FILE* file_;
  bool first_ = true;
};

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    CUDA_CHECK(cudaMalloc(&data_, std::max<size_t>(size, 1) * sizeof(T)));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> ToHost() const {
    std::vector<T> host(size_);
    CUDA_CHECK(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

[[noreturn]] inline void FailCheck(const char* what) {
  std::fprintf(stderr, "check failed: %s\n", what);
  std::exit(2);
}

// Value of column c of row r of every table and gradient, so that the host can recompute any result: k / 65536.
__host__ __device__ inline float CellValue(uint64_t row, uint32_t column) {
  return static_cast<float>((static_cast<uint32_t>(row) * 2654435761u + column * 40503u) >> 16) / 65536.0f;
}

__host__ __device__ inline uint64_t Mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static __global__ void FillCells(float4* table, uint64_t rows, uint32_t vectors) {
  const uint64_t total = rows * vectors;
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<uint64_t>(gridDim.x) * blockDim.x) {
    const uint64_t row = i / vectors;
    const uint32_t column = static_cast<uint32_t>(i % vectors) * 4;
    table[i] = make_float4(CellValue(row, column), CellValue(row, column + 1), CellValue(row, column + 2),
                           CellValue(row, column + 3));
  }
}

// Row numbers from first_row on: uniform for exponent 0, else P(rank) ~ rank^-exponent by the inverse of the continuous
// law, with ranks scattered over the table by a hash of (rank, seed) so that each seed has other hot rows.
static __global__ void FillIndices(int64_t* indices, int64_t count, int64_t rows, double exponent, uint64_t seed,
                                   int64_t first_row = 0) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    const uint64_t random = Mix(seed * 0x100000001ull + i);
    const double u = static_cast<double>(random >> 11) * 0x1.0p-53;
    if (exponent == 0.0) {
      indices[i] = first_row + static_cast<int64_t>(u * rows);
    } else {
      const double power = 1.0 - exponent;
      const double rank = pow(1.0 + u * (pow(static_cast<double>(rows + 1), power) - 1.0), 1.0 / power);
      const uint64_t bounded = static_cast<uint64_t>(fmin(rank, static_cast<double>(rows)));
      indices[i] = first_row + static_cast<int64_t>(Mix(bounded * 31 + seed) % static_cast<uint64_t>(rows));
    }
  }
}

}  // namespace measure
