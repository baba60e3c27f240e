// What the runtime of `portolan verify` costs: simple work-items, and lanes in votes, a second of processor time, on the
// two kernels that the emulator's own test times (src/device/emu/emu_test_cases.h, TwentyMillionStepsASecond).
#include <cuda_runtime.h>
#include <sys/resource.h>

#include <cstdio>

__global__ void Saxpy(float factor, const float* x, float* y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  y[i] += factor * x[i];
}

__global__ void VoteOften(int rounds) {
  for (int i = 0; i < rounds; ++i) __ballot_sync(0xffffffffu, true);
}

// Clocks are not the machine's in a program that verify runs; this is.
double ProcessorSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec;
}

template <typename F>
double BestRate(double steps, F run) {
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double start = ProcessorSeconds();
    run();
    const double rate = steps / (ProcessorSeconds() - start);
    if (rate > best) best = rate;
  }
  return best;
}

int main(int argc, char**) {
  const int blocks = 4096, threads = 256, rounds = 200;
  float *x, *y;
  cudaMalloc(&x, sizeof(float) * blocks * threads);
  cudaMalloc(&y, sizeof(float) * blocks * threads);
  cudaMemset(x, 0, sizeof(float) * blocks * threads);
  cudaMemset(y, 0, sizeof(float) * blocks * threads);
  const double items = BestRate(1.0 * blocks * threads, [&] { Saxpy<<<blocks, threads>>>(3, x, y); });
  const double votes = BestRate(16.0 * threads * rounds, [&] { VoteOften<<<16, threads>>>(rounds); });
  // A compared run prints the same in every run.
  if (argc > 1) std::printf("%.1f M work-items/s, %.1f M lanes in votes/s\n", items / 1e6, votes / 1e6);
  cudaFree(x);
  cudaFree(y);
  return 0;
}
