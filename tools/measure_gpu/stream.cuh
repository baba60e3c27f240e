#pragma once

#include <chrono>

#include "timing.cuh"

namespace measure {

static __global__ void Empty(float* out) {
  if (out != nullptr && threadIdx.x == 0 && blockIdx.x == 0) *out += 1.0f;
}

static __global__ void Copy(const float4* __restrict__ in, float4* __restrict__ out, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  for (; i + 3 * stride < n; i += 4 * stride) {
    const float4 a = in[i], b = in[i + stride], c = in[i + 2 * stride], d = in[i + 3 * stride];
    out[i] = a, out[i + stride] = b, out[i + 2 * stride] = c, out[i + 3 * stride] = d;
  }
  for (; i < n; i += stride) out[i] = in[i];
}

static __global__ void Triad(const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ out,
                             int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += stride) {
    const float4 a = x[i], b = y[i];
    out[i] = make_float4(a.x + 3.0f * b.x, a.y + 3.0f * b.y, a.z + 3.0f * b.z, a.w + 3.0f * b.w);
  }
}

static __global__ void Write(float4* __restrict__ out, int64_t n, float value) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += stride) {
    out[i] = make_float4(value, value + static_cast<float>(i & 1023), value, value);
  }
}

// Reads the buffer `passes` times past the L1, each block starting elsewhere in each pass.
static __global__ void ReadRepeatedly(const float4* __restrict__ in, int64_t n, int passes, float* out) {
  float4 sum = make_float4(0, 0, 0, 0);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    const int64_t block = (blockIdx.x + pass * 37) % gridDim.x;
#pragma unroll 4
    for (int64_t i = block * blockDim.x + threadIdx.x; i < n; i += stride) {
      const float4 v = __ldcg(in + i);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
  }
  if (sum.x + sum.y + sum.z + sum.w == 0.12345f) *out = sum.x;
}

template <bool kExp2>
__global__ void Arithmetic(float* out, int iterations) {
  float v[8];
  for (int k = 0; k < 8; ++k) v[k] = 1e-3f * static_cast<float>(threadIdx.x + k);
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (kExp2) {
        asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v[k]));
      } else {
        v[k] = fmaf(v[k], 0.999f, 0.5f);
      }
    }
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += v[k];
  if (sum == 0.12345f) *out = sum;
}

inline int GridFor(int64_t vectors, int multiprocessors) {
  return static_cast<int>(std::clamp<int64_t>((vectors + 255) / 256, 1, multiprocessors * 32));
}

inline void MeasureFixed(Report& report, int multiprocessors) {
  DeviceArray<float> one(1);
  CUDA_CHECK(cudaMemset(one.get(), 0, 4));
  const int launches = 500;
  report.Add("fixed_graph", TimeInGraph(launches, [&](cudaStream_t s, int) { Empty<<<1, 32, 0, s>>>(one.get()); }),
             "\"blocks\": 1, \"threads\": 32");
  report.Add("fixed_graph",
             TimeInGraph(launches, [&](cudaStream_t s, int) { Empty<<<8 * multiprocessors, 256, 0, s>>>(one.get()); }),
             "\"blocks\": %d, \"threads\": 256", 8 * multiprocessors);
  std::vector<double> device;
  std::vector<double> host;
  cudaEvent_t begin;
  cudaEvent_t end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int sample = -2; sample < kSamples; ++sample) {
    CUDA_CHECK(cudaEventRecord(begin));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) Empty<<<8 * multiprocessors, 256>>>(one.get());
    const std::chrono::duration<double> enqueued = std::chrono::steady_clock::now() - start;
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (sample < 0) continue;
    device.push_back(milliseconds * 1e-3 / launches);
    host.push_back(enqueued.count() / launches);
  }
  report.Add("fixed_stream", SpreadOf(device), "\"blocks\": %d, \"threads\": 256", 8 * multiprocessors);
  report.Add("host_launch", SpreadOf(host), "\"blocks\": %d, \"threads\": 256", 8 * multiprocessors);
}

inline void MeasureArithmetic(Report& report, int multiprocessors) {
  DeviceArray<float> out(1);
  const int blocks = multiprocessors * 8;
  const int iterations = 4096;
  const double results = 8.0 * iterations * 256 * blocks;
  report.Add(
      "exp2",
      TimeInGraph(4, [&](cudaStream_t s, int) { Arithmetic<true><<<blocks, 256, 0, s>>>(out.get(), iterations); }),
      "\"results\": %.4e", results);
  report.Add(
      "fma_fp32",
      TimeInGraph(4, [&](cudaStream_t s, int) { Arithmetic<false><<<blocks, 256, 0, s>>>(out.get(), iterations); }),
      "\"flops\": %.4e", 2 * results);
}

inline void MeasureStream(Report& report, int multiprocessors) {
  const int64_t pool_bytes = int64_t{8} << 30;
  const int64_t pool = pool_bytes / 16;
  DeviceArray<float4> in(pool);
  DeviceArray<float4> in2(pool);
  DeviceArray<float4> out(pool);
  FillCells<<<multiprocessors * 16, 256>>>(in.get(), pool, 1);
  FillCells<<<multiprocessors * 16, 256>>>(in2.get(), pool, 1);
  CUDA_CHECK(cudaMemset(out.get(), 0xff, pool_bytes));
  // Check on an awkward size, then on the last element of a large one.
  for (const int64_t n : {int64_t{4099}, pool}) {
    Copy<<<GridFor(n, multiprocessors), 256>>>(in.get(), out.get(), n);
    float4 last;
    CUDA_CHECK(cudaMemcpy(&last, out.get() + n - 1, 16, cudaMemcpyDeviceToHost));
    if (last.y != CellValue(n - 1, 1)) FailCheck("copy");
    Triad<<<GridFor(n, multiprocessors), 256>>>(in.get(), in2.get(), out.get(), n);
    CUDA_CHECK(cudaMemcpy(&last, out.get() + n - 1, 16, cudaMemcpyDeviceToHost));
    if (last.y != CellValue(n - 1, 1) + 3.0f * CellValue(n - 1, 1)) FailCheck("triad");
  }
  // `bytes` is the size of one tensor. Cold: every launch takes the next slot of the 8 GiB pools. Hand-off: launch i
  // reads slot i, which launch i-1 wrote, and writes slot i+1.
  for (int64_t bytes = 64 << 10; bytes <= int64_t{4} << 30; bytes *= 2) {
    const int64_t n = bytes / 16;
    const int64_t slots = pool / n;
    const int repeats = static_cast<int>(std::clamp<int64_t>((int64_t{4} << 30) / bytes, 2, 400));
    const int grid = GridFor(n, multiprocessors);
    report.Add("copy_cold",
               TimeInGraph(repeats,
                           [&](cudaStream_t s, int i) {
                             const int64_t at = (i % slots) * n;
                             Copy<<<grid, 256, 0, s>>>(in.get() + at, out.get() + at, n);
                           }),
               "\"read\": %lld, \"written\": %lld", (long long)bytes, (long long)bytes);
    report.Add("triad_cold",
               TimeInGraph(repeats,
                           [&](cudaStream_t s, int i) {
                             const int64_t at = (i % slots) * n;
                             Triad<<<grid, 256, 0, s>>>(in.get() + at, in2.get() + at, out.get() + at, n);
                           }),
               "\"read\": %lld, \"written\": %lld", (long long)bytes * 2, (long long)bytes);
    report.Add("read_cold",
               TimeInGraph(repeats,
                           [&](cudaStream_t s, int i) {
                             ReadRepeatedly<<<grid, 256, 0, s>>>(in.get() + (i % slots) * n, n, 1, (float*)out.get());
                           }),
               "\"read\": %lld, \"written\": 0", (long long)bytes);
    report.Add("write_cold",
               TimeInGraph(repeats,
                           [&](cudaStream_t s, int i) {
                             Write<<<grid, 256, 0, s>>>(out.get() + (i % slots) * n, n, static_cast<float>(i));
                           }),
               "\"read\": 0, \"written\": %lld", (long long)bytes);
    if (slots >= 8) {
      report.Add("copy_handoff",
                 TimeInGraph(repeats,
                             [&](cudaStream_t s, int i) {
                               Copy<<<grid, 256, 0, s>>>(out.get() + (i % slots) * n, out.get() + ((i + 1) % slots) * n,
                                                         n);
                             }),
                 "\"read\": %lld, \"written\": %lld", (long long)bytes, (long long)bytes);
      report.Add("copy_pingpong",
                 TimeInGraph(repeats,
                             [&](cudaStream_t s, int i) {
                               Copy<<<grid, 256, 0, s>>>(out.get() + (i % 2) * n, out.get() + ((i + 1) % 2) * n, n);
                             }),
                 "\"read\": %lld, \"written\": %lld", (long long)bytes, (long long)bytes);
    }
  }
  for (int64_t bytes = 1 << 20; bytes <= 256 << 20; bytes *= 2) {
    const int64_t n = bytes / 16;
    const int passes = static_cast<int>(std::clamp<int64_t>((int64_t{2} << 30) / bytes, 8, 1024));
    report.Add("read_repeated",
               TimeInGraph(3,
                           [&](cudaStream_t s, int) {
                             ReadRepeatedly<<<std::min(GridFor(n, multiprocessors), multiprocessors * 8), 256, 0, s>>>(
                                 in.get(), n, passes, (float*)out.get());
                           }),
               "\"buffer\": %lld, \"read\": %.6e", (long long)bytes, static_cast<double>(bytes) * passes);
  }
}

inline void MeasureHostLink(Report& report) {
  const size_t bytes = 256 << 20;
  DeviceArray<char> device(bytes);
  void* host = nullptr;
  CUDA_CHECK(cudaMallocHost(&host, bytes));
  std::fill_n(static_cast<char*>(host), bytes, 7);
  for (const cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost}) {
    const bool up = kind == cudaMemcpyHostToDevice;
    report.Add(
        up ? "host_to_device" : "device_to_host",
        TimeInGraph(2,
                    [&](cudaStream_t s, int) {
                      CUDA_CHECK(cudaMemcpyAsync(up ? device.get() : host, up ? host : device.get(), bytes, kind, s));
                    }),
        "\"bytes\": %zu", bytes);
  }
  CUDA_CHECK(cudaFreeHost(host));
}

}  // namespace measure
