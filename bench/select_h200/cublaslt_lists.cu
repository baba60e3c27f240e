// Times everything that cublasLtMatmulAlgoGetHeuristic proposes for fresh random shapes, one CSV row a proposal, in the
// columns that `portolan select --batch` and tools/calibrate_gemm read:
//
//   nvcc -O2 -std=c++17 -arch=sm_90 cublaslt_lists.cu -lcublasLt -o cublaslt_lists
//   ./cublaslt_lists SEED SECONDS bf16|tf32|fp8 OUT.csv
//
// Half of the shapes are layers of recommendation models (a batch and two widths, as forward, input gradient or weight
// gradient), half are log-uniform, some with odd sizes; a few are batched. Buffers rotate until they exceed the L2.
// Times are medians of graph replays. Stops after SECONDS; the same seed gives the same shapes in the same order.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define CHECK(call)                                                                                 \
  do {                                                                                              \
    const auto status = (call);                                                                     \
    if (static_cast<int>(status) != 0) {                                                            \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(status)); \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (false)

constexpr size_t kWorkspaceBytes = 64u << 20;
constexpr double kColdBytes = 60e6;  // more than the L2 keeps
constexpr size_t kArenaBytes = 6ull << 30;
constexpr int kMostProposals = 8, kReplays = 5;
constexpr double kMostFlops = 4e11, kMostBytes = 1.2e9;

struct Format {
  const char* name;
  cudaDataType_t in, out;
  cublasComputeType_t compute;
  size_t in_bytes, out_bytes;
};
constexpr Format kFormats[] = {{"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 2},
                               {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4},
                               {"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 2}};

struct Shape {
  const char* layout;
  int64_t m, n, k, batch;
};

class Shapes {
 public:
  Shapes(unsigned seed, bool fp8) : random_(seed), fp8_(fp8) {}

  Shape Next(const Format& format) {
    for (;;) {
      const Shape s = Draw();
      const double flops = 2.0 * s.m * s.n * s.k * s.batch;
      const double bytes =
          s.batch * ((1.0 * s.m * s.k + 1.0 * s.k * s.n) * format.in_bytes + 1.0 * s.m * s.n * format.out_bytes);
      if (flops <= kMostFlops && bytes <= kMostBytes) return s;
    }
  }

 private:
  double Uniform() { return (random_() >> 8) * (1.0 / 16777216.0); }
  int64_t LogUniform(double low, double high) {
    return static_cast<int64_t>(std::lround(low * std::pow(high / low, Uniform())));
  }
  int64_t Rounded(int64_t x) {
    const double u = Uniform();
    const int64_t grain = fp8_ ? 16 : u < 0.2 ? 1 : u < 0.65 ? 8 : 64;
    return std::max<int64_t>(grain, (x + grain / 2) / grain * grain);
  }
  int64_t Width() {
    static constexpr int kWidths[] = {13,  64,  96,  128, 192,  200,  256,  300,  320,  351,  367,  384,  479, 512,
                                      640, 768, 800, 960, 1000, 1024, 1280, 1536, 2048, 3072, 3456, 4096, 5120};
    const double u = Uniform();
    int64_t width = u < 0.6 ? kWidths[random_() % std::size(kWidths)] : Rounded(LogUniform(16, 6000));
    if (fp8_) width = std::max<int64_t>(16, (width + 8) / 16 * 16);
    return width;
  }
  Shape Draw() {
    const int pass = fp8_ ? 0 : static_cast<int>(random_() % 3);
    if (!fp8_ && Uniform() < 0.03) {
      const int64_t side = LogUniform(16, 256);
      return {pass == 0   ? "TN"
              : pass == 1 ? "NN"
                          : "NT",
              Rounded(side), Rounded(LogUniform(16, 256)), Rounded(LogUniform(16, 256)), LogUniform(16, 4096)};
    }
    if (Uniform() < 0.55) {
      static constexpr int kBatches[] = {512, 1024, 2048, 4096, 6912, 8192, 16384, 32768, 65536};
      const int64_t rows =
          Uniform() < 0.8 ? kBatches[random_() % std::size(kBatches)] : Rounded(LogUniform(256, 100000));
      const int64_t out = Width(), in = Width();
      if (pass == 0) return {"TN", rows, out, in, 1};
      if (pass == 1) return {"NN", rows, in, out, 1};
      return {"NT", in, out, rows, 1};
    }
    return {pass == 0   ? "TN"
            : pass == 1 ? "NN"
                        : "NT",
            Rounded(LogUniform(8, 40000)), Rounded(LogUniform(8, 8192)), Rounded(LogUniform(16, 16384)), 1};
  }

  std::mt19937 random_;
  bool fp8_;
};

__global__ void Fill(uint8_t* data, size_t bytes, int kind) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < bytes / 4;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    uint32_t word = static_cast<uint32_t>(x);
    // Values in (-1, 1): exponents just below that of one.
    if (kind == 2) {
      word = (word & 0x807F807Fu) | 0x3F003F00u;
    } else if (kind == 4) {
      word = (word & 0x807FFFFFu) | 0x3F000000u;
    } else {
      word = (word & 0x87878787u) | 0x30303030u;
    }
    reinterpret_cast<uint32_t*>(data)[i] = word;
  }
}

struct Bench {
  const Format& format;
  cublasLtHandle_t handle;
  cudaStream_t stream;
  uint8_t* arena;
  void* workspace;
  cudaEvent_t begin, end;

  cublasLtMatrixLayout_t Layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch) const {
    cublasLtMatrixLayout_t layout;
    CHECK(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, rows));
    if (batch > 1) {
      const int32_t count = static_cast<int32_t>(batch);
      const int64_t stride = rows * columns;
      CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
      CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                             sizeof(stride)));
    }
    return layout;
  }

  template <typename T>
  static T Attribute(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t which) {
    T value = 0;
    size_t written = 0;
    cublasLtMatmulAlgoConfigGetAttribute(&algo, which, &value, sizeof(value), &written);
    return value;
  }

  // Column-major: D^T [n, m] = op(B) [n, k] op(A) [k, m].
  int Run(const Shape& s, std::FILE* out) const {
    const bool b_transposed = s.layout[0] == 'T' && s.layout[1] == 'N';  // weights stored [N, K]
    const bool a_transposed = s.layout[0] == 'N' && s.layout[1] == 'T';  // A stored [K, M]
    cublasLtMatmulDesc_t op;
    CHECK(cublasLtMatmulDescCreate(&op, format.compute, CUDA_R_32F));
    const cublasOperation_t first = b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    CHECK(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)));
    CHECK(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)));
    const auto lb = b_transposed ? Layout(format.in, s.k, s.n, s.batch) : Layout(format.in, s.n, s.k, s.batch);
    const auto la = a_transposed ? Layout(format.in, s.m, s.k, s.batch) : Layout(format.in, s.k, s.m, s.batch);
    const auto ld = Layout(format.out, s.n, s.m, s.batch);
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                                               sizeof(kWorkspaceBytes)));
    cublasLtMatmulHeuristicResult_t proposals[kMostProposals];
    int found = 0;
    if (cublasLtMatmulAlgoGetHeuristic(handle, op, lb, la, ld, ld, preference, kMostProposals, proposals, &found) !=
        CUBLAS_STATUS_SUCCESS)
      found = 0;

    const auto aligned = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
    const size_t a_bytes = aligned(s.batch * s.m * s.k * format.in_bytes),
                 b_bytes = aligned(s.batch * s.k * s.n * format.in_bytes);
    const size_t set = a_bytes + b_bytes + aligned(s.batch * s.m * s.n * format.out_bytes);
    const int launches = std::clamp(static_cast<int>(kColdBytes / static_cast<double>(set)) + 1, 4, 20);
    const int sets = std::min<int>(launches, std::max<int>(1, static_cast<int>(kArenaBytes / set)));
    const float alpha = 1.0f, beta = 0.0f;
    for (int rank = 0; rank < found; ++rank) {
      const cublasLtMatmulAlgo_t& algo = proposals[rank].algo;
      cudaGraph_t graph;
      cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
      const auto launch = [&](int i) {
        uint8_t* base = arena + static_cast<size_t>(i % sets) * set;
        const cublasStatus_t now =
            cublasLtMatmul(handle, op, &alpha, base + a_bytes, lb, base, la, &beta, base + a_bytes + b_bytes, ld,
                           base + a_bytes + b_bytes, ld, &algo, workspace, kWorkspaceBytes, stream);
        if (now != CUBLAS_STATUS_SUCCESS) status = now;
      };
      launch(0);  // loads the kernel outside the capture
      if (status != CUBLAS_STATUS_SUCCESS || cudaStreamSynchronize(stream) != cudaSuccess) continue;
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < launches; ++i) launch(i);
      CHECK(cudaStreamEndCapture(stream, &graph));
      cudaGraphExec_t executable;
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
      float us[kReplays];
      for (int replay = -1; replay < kReplays; ++replay) {
        CHECK(cudaEventRecord(begin, stream));
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (replay >= 0) us[replay] = ms * 1000.0f / static_cast<float>(launches);
      }
      std::sort(us, us + kReplays);
      CHECK(cudaGraphExecDestroy(executable));
      CHECK(cudaGraphDestroy(graph));
      std::fprintf(out, "%s,%s,%lld,%lld,%lld,%lld,%d,%d,%u,%u,%d,%u,%u,%u,%u,%u,%.4f,%zu,%.3f,%.3f\n", format.name,
                   s.layout, static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k),
                   static_cast<long long>(s.batch), rank, Attribute<int32_t>(algo, CUBLASLT_ALGO_CONFIG_ID),
                   Attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
                   Attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                   Attribute<int32_t>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                   Attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
                   Attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                   Attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                   Attribute<uint16_t>(algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
                   Attribute<uint16_t>(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID), proposals[rank].wavesCount,
                   proposals[rank].workspaceSize, us[0], us[kReplays / 2]);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    for (const auto layout : {la, lb, ld}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(op);
    return found;
  }
};

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SEED SECONDS bf16|tf32|fp8 OUT.csv\n", argv[0]);
    return 2;
  }
  const double seconds = std::atof(argv[2]);
  const Format* format = nullptr;
  for (const Format& f : kFormats) {
    if (std::strcmp(f.name, argv[3]) == 0) format = &f;
  }
  std::FILE* out = std::fopen(argv[4], "w");
  if (format == nullptr || out == nullptr) {
    std::fprintf(stderr, "unknown format, or cannot write %s\n", argv[4]);
    return 2;
  }
  cudaDeviceProp device;
  int driver = 0;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CHECK(cudaDriverGetVersion(&driver));
  Bench bench{*format, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  CHECK(cublasLtCreate(&bench.handle));
  CHECK(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&bench.arena, kArenaBytes + (64u << 20)));
  CHECK(cudaMalloc(&bench.workspace, kWorkspaceBytes));
  CHECK(cudaEventCreate(&bench.begin));
  CHECK(cudaEventCreate(&bench.end));
  Fill<<<1024, 256>>>(bench.arena, kArenaBytes + (64u << 20), static_cast<int>(format->in_bytes));
  CHECK(cudaDeviceSynchronize());
  std::fputs(
      "dtype,layout,M,N,K,batch,rank,algo,tile,stages,splitk,reduction,swizzle,custom,inner,cluster,waves,ws_bytes,us_"
      "min,us_med\n",
      out);
  Shapes shapes(static_cast<unsigned>(std::atoi(argv[1])), format->in_bytes == 1);
  const auto start = std::chrono::steady_clock::now();
  int problems = 0;
  // Warm clocks: the first problems of a cold device would look slow.
  for (int i = 0; i < 3; ++i) {
    std::FILE* nowhere = std::fopen("/dev/null", "w");
    bench.Run({"TN", 8192, 4096, 4096, 1}, nowhere);
    std::fclose(nowhere);
  }
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    if (bench.Run(shapes.Next(*format), out) > 0) ++problems;
  }
  std::fclose(out);
  std::printf("%s: %d problems of seed %s in %s, %s, driver %d, cuBLASLt %zu\n", format->name, problems, argv[1],
              argv[4], device.name, driver, cublasLtGetVersion());
  return 0;
}
