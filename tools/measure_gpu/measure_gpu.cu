// Micro-benchmarks of one NVIDIA GPU for the cost model: streams, launches, embedding gather and embedding backward.
// Every kernel's result is checked before it is timed; times are medians of kSamples graph launches over rotated
// buffers. See docs/cost-memory.md for what the numbers mean and how they are used.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -o measure_gpu tools/measure_gpu/measure_gpu.cu
//   ./measure_gpu memory.json 2026-11-30 580.159.04     (date, driver version; needs about 100 GB of device memory)

#include "embedding_backward.cuh"
#include "stream.cuh"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: measure_gpu OUTPUT.json DATE DRIVER\n");
    return 2;
  }
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  int runtime = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  int sm_khz = 0;
  int memory_khz = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&sm_khz, cudaDevAttrClockRate, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0));
  FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) {
    std::perror(argv[1]);
    return 3;
  }
  std::fprintf(file,
               "{\n  \"device\": \"%s\",\n  \"date\": \"%s\",\n  \"tool\": \"tools/measure_gpu/measure_gpu.cu\",\n"
               "  \"build\": \"nvcc -O3 -std=c++17 -arch=sm_90\",\n  \"command\": \"measure_gpu memory.json %s %s\",\n"
               "  \"driver\": \"%s\",\n"
               "  \"cuda_driver_version\": %d,\n  \"cuda_runtime_version\": %d,\n  \"multiprocessors\": %d,\n"
               "  \"l2_bytes\": %d,\n  \"memory_bytes\": %zu,\n  \"max_sm_clock_khz\": %d,\n"
               "  \"memory_clock_khz\": %d,\n  \"samples\": %d,\n  \"records\": [",
               properties.name, argv[2], argv[2], argv[3], argv[3], driver, runtime, properties.multiProcessorCount,
               properties.l2CacheSize, properties.totalGlobalMem, sm_khz, memory_khz, measure::kSamples);
  measure::Report report(file);
  const int multiprocessors = properties.multiProcessorCount;
  measure::MeasureFixed(report, multiprocessors);
  measure::MeasureArithmetic(report, multiprocessors);
  measure::MeasureStream(report, multiprocessors);
  measure::MeasureHostLink(report);
  measure::MeasureSort(report);
  measure::MeasureGather(report, multiprocessors);
  measure::MeasureBackward(report, multiprocessors);
  std::fprintf(file, "\n  ]\n}\n");
  return std::fclose(file) == 0 ? 0 : 3;
}
