#include "kernels/gemm/cuda_gemm.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "kernels/cuda_kernels.h"
#include "kernels/gemm/cuda_cublaslt.h"

namespace portolan::kernels::cuda {
namespace {

using device::cuda::CheckRuntime;
using device::cuda::DeviceMemory;

constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;
constexpr int kMostListed = 8;
// Runs of each kernel of the list when they are compared; the fastest counts.
constexpr int kTimedRuns = 4;

bool IsPlain(Epilogue epilogue) {
  return epilogue == Epilogue::kNone || epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu;
}

cublasLtEpilogue_t NativeEpilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kBiasReluMask:
      return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    case Epilogue::kReluGradient:
      return CUBLASLT_EPILOGUE_DRELU_BGRAD;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// A product as the library sees it: column-major, so D^T [N, M] = op(B)^T op(A)^T.
class Description {
 public:
  Description(const CublasLt& library, const CudaProduct& p) : library_(library) {
    const cudaDataType_t in = p.math == ProductMath::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
    const cudaDataType_t out = p.fp32_out ? CUDA_R_32F : in;
    const cublasComputeType_t compute =
        p.math == ProductMath::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    good_ = library.MatmulDescCreate(&op, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS;
    const bool first_transposed = p.b_transposed == Transpose::kYes,
               second_transposed = p.a_transposed == Transpose::kYes;
    const cublasOperation_t first = first_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = second_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    Set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    if (p.epilogue != Epilogue::kNone) {
      Set(CUBLASLT_MATMUL_DESC_EPILOGUE, NativeEpilogue(p.epilogue));
      Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, out);
    }
    if (!IsPlain(p.epilogue)) Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MaskStride(p.n));
    const auto make = [&](cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows, int64_t columns,
                          int64_t stride) {
      good_ = good_ && library.MatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                                  static_cast<uint64_t>(columns), stride) == CUBLAS_STATUS_SUCCESS;
    };
    make(a, in, first_transposed ? p.k : p.n, first_transposed ? p.n : p.k, p.ldb);
    make(b, in, second_transposed ? p.m : p.k, second_transposed ? p.k : p.m, p.lda);
    make(d, out, p.n, p.m, p.ldd);
  }
  ~Description() {
    if (op != nullptr) library_.MatmulDescDestroy(op);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) {
      if (layout != nullptr) library_.MatrixLayoutDestroy(layout);
    }
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  void SetPointers(Epilogue epilogue, const void* bias, const void* mask) {
    if (epilogue == Epilogue::kNone) return;
    Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (!IsPlain(epilogue)) Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> List(int most) const {
    std::vector<cublasLtMatmulHeuristicResult_t> list(static_cast<size_t>(most));
    int found = 0;
    cublasLtMatmulPreference_t preference = nullptr;
    if (good_ && library_.MatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS) {
      const auto bytes = static_cast<uint64_t>(kWorkspaceBytes);
      library_.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                            sizeof(bytes));
      if (library_.MatmulAlgoGetHeuristic(library_.handle, op, a, b, d, d, preference, most, list.data(), &found) !=
          CUBLAS_STATUS_SUCCESS) {
        found = 0;
      }
      library_.MatmulPreferenceDestroy(preference);
    }
    list.resize(static_cast<size_t>(found));
    return list;
  }

  cublasLtMatmulDesc_t op = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;

 private:
  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    good_ = good_ && library_.MatmulDescSetAttribute(op, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  }
  const CublasLt& library_;
  bool good_ = false;
};

int64_t BytesOf(const CudaProduct& p, int64_t rows, int64_t stride, bool fp32) {
  return rows * stride * (fp32 || p.math != ProductMath::kBf16 ? 4 : 2);
}

}  // namespace

class CudaGemm::Impl {
 public:
  explicit Impl(Choice choice) : choice_(choice), library_(LoadCublasLt()) {
    if (library_.handle != nullptr) workspace_ = DeviceMemory(kWorkspaceBytes, "the workspace of matrix products");
  }

  struct Plan {
    CudaProduct product;
    std::unique_ptr<Description> description;  // null: our own tiles
    cublasLtMatmulAlgo_t kernel = {};
    bool possible = true;
    Timing timing;
  };

  Plan& PlanOf(const CudaProduct& product, Choice choice) {
    for (const auto& plan : plans_) {
      if (plan->product == product) return *plan;
    }
    plans_.push_back(std::make_unique<Plan>());
    Plan& plan = *plans_.back();
    plan.product = product;
    if (library_.handle != nullptr && product.m > 0 && product.n > 0 && product.k > 0) {
      auto description = std::make_unique<Description>(library_, product);
      const auto list = description->List(kMostListed);
      plan.timing.listed = static_cast<int>(list.size());
      if (!list.empty()) {
        plan.kernel = list.front().algo;
        plan.description = std::move(description);
        if (choice == Choice::kMeasured && list.size() > 1) {
          const Comparison fastest = Compare(list, plan);
          plan.kernel = list[fastest.index].algo;
          plan.timing.taken_s = fastest.seconds;
          plan.timing.first_s = fastest.first_s;
        }
      }
    }
    plan.possible = plan.description != nullptr || IsPlain(product.epilogue);
    return plan;
  }

  void Run(Plan& plan, const void* a, const void* b, const void* c, void* d, void* bias, void* mask,
           cudaStream_t stream) {
    const CudaProduct& p = plan.product;
    if (p.m <= 0 || p.n <= 0) return;
    if (plan.description == nullptr) {
      PORTOLAN_CHECK(plan.possible, "a product that nobody here can do was queued");
      return TiledProduct(p, a, b, c, d, bias, {stream});
    }
    plan.description->SetPointers(p.epilogue, bias, mask);
    const cublasStatus_t status = Queue(plan, plan.kernel, a, b, c, d, stream);
    if (status != CUBLAS_STATUS_SUCCESS) {
      CheckRuntime(cudaGetLastError(), "a matrix product");
      throw device::cuda::DeviceFailure("cuBLASLt refused a product of " + std::to_string(p.m) + " x " +
                                        std::to_string(p.n) + " x " + std::to_string(p.k) + " with status " +
                                        std::to_string(static_cast<int>(status)));
    }
  }

  const CublasLt& library() const { return library_; }
  Choice choice() const { return choice_; }
  Timing TimingOf(const CudaProduct& product) const {
    for (const auto& plan : plans_) {
      if (plan->product == product) return plan->timing;
    }
    return {};
  }

 private:
  cublasStatus_t Queue(const Plan& plan, const cublasLtMatmulAlgo_t& kernel, const void* a, const void* b,
                       const void* c, void* d, cudaStream_t stream) const {
    const float alpha = 1;
    const Description& description = *plan.description;
    return library_.Matmul(library_.handle, description.op, &alpha, b, description.a, a, description.b,
                           &plan.product.beta, c, description.d, d, description.d, &kernel, workspace_.As<void>(),
                           static_cast<size_t>(workspace_.bytes()), stream);
  }

  // The fastest of a list; the first, and no time, where the device has no memory to try.
  struct Comparison {
    size_t index = 0;
    double seconds = 0, first_s = 0, of_first_eight = 0;
  };
  Comparison Compare(const std::vector<cublasLtMatmulHeuristicResult_t>& list, const Plan& plan) const {
    Comparison result;
    const CudaProduct& p = plan.product;
    const int64_t a_bytes = BytesOf(p, p.a_transposed == Transpose::kYes ? p.k : p.m, p.lda, false);
    const int64_t b_bytes = BytesOf(p, p.b_transposed == Transpose::kYes ? p.n : p.k, p.ldb, false);
    const int64_t d_bytes = BytesOf(p, p.m, p.ldd, p.fp32_out);
    const int64_t mask_bytes = IsPlain(p.epilogue) ? 0 : p.m * MaskStride(p.n) / 8;
    size_t free_bytes = 0, total_bytes = 0;
    CheckRuntime(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
    constexpr int64_t kLeftFree = int64_t{1} << 30;
    if (a_bytes + b_bytes + d_bytes + mask_bytes + 4 * p.n + kLeftFree > static_cast<int64_t>(free_bytes))
      return result;
    const DeviceMemory a(a_bytes, "timing products"), b(b_bytes, "timing products"), d(d_bytes, "timing products"),
        mask(mask_bytes, "timing products"), bias(4 * p.n, "timing products");
    // The workspace may be in use by products under way, and they would disturb the times.
    CheckRuntime(cudaDeviceSynchronize(), "timing products");
    const device::cuda::Queue queue;
    // Zeros and equal numbers multiply faster than data does (on an H200 by 13 %): normal ones.
    FillNormal(queue, p, a);
    FillNormal(queue, p, b);
    for (const DeviceMemory* memory : {&d, &mask, &bias})
      device::cuda::FillZero(queue, memory->As<void>(), memory->bytes());
    plan.description->SetPointers(p.epilogue, bias.As<void>(), mask.As<void>());
    device::cuda::Event begin(device::cuda::Event::Timing::kTimed), end(device::cuda::Event::Timing::kTimed);
    for (size_t i = 0; i < list.size(); ++i) {
      double fastest = 0;
      bool good = true;
      for (int run = 0; run <= kTimedRuns && good; ++run) {
        begin.Record(queue);
        good = Queue(plan, list[i].algo, a.As<void>(), b.As<void>(), d.As<void>(), d.As<void>(), queue.native()) ==
               CUBLAS_STATUS_SUCCESS;
        end.Record(queue);
        end.Wait();
        const double seconds = end.MillisecondsSince(begin) * 1e-3;
        if (run > 0 && (fastest == 0 || seconds < fastest)) fastest = seconds;  // the first warms up
      }
      if (!good) continue;
      if (i == 0) result.first_s = fastest;
      if (result.seconds == 0 || fastest < result.seconds) {
        result.seconds = fastest;
        result.index = i;
      }
      if (i < kMostListed) result.of_first_eight = result.seconds;
    }
    return result;
  }

  static void FillNormal(const device::cuda::Queue& queue, const CudaProduct& p, const DeviceMemory& memory) {
    constexpr uint32_t kKey = 12345;
    constexpr int64_t kAtOnce = int64_t{1} << 24;
    const bool narrow = p.math == ProductMath::kBf16;
    const int64_t count = memory.bytes() / (narrow ? 2 : 4);
    if (!narrow) return InitialNormal(kKey, 1, 1, count, count, memory.As<float>(), queue.stream());
    const DeviceMemory wide(4 * std::min(count, kAtOnce), "timing products");
    InitialNormal(kKey, 1, 1, std::min(count, kAtOnce), count, wide.As<float>(), queue.stream());
    for (int64_t first = 0; first < count; first += kAtOnce) {
      const int64_t some = std::min(kAtOnce, count - first);
      Convert<float, Bf16>(1, some, {wide.As<float>(), some}, {memory.As<Bf16>() + first, some}, queue.stream());
    }
    queue.Wait();
  }

 public:
  WholeList CompareWithWholeList() const {
    constexpr int kMost = 64;
    WholeList sum;
    for (const auto& plan : plans_) {
      if (plan->description == nullptr) continue;
      const auto list = plan->description->List(kMost);
      const Comparison fastest = Compare(list, *plan);
      if (fastest.seconds <= 0) continue;
      sum.taken_s += fastest.of_first_eight;
      sum.best_s += fastest.seconds;
      ++sum.products;
      sum.kernels += static_cast<int>(list.size());
    }
    return sum;
  }

 private:
  const Choice choice_;
  const CublasLt& library_;
  DeviceMemory workspace_;
  std::vector<std::unique_ptr<Plan>> plans_;
};

CudaGemm::CudaGemm(Choice choice) : impl_(std::make_unique<Impl>(choice)) {}
CudaGemm::~CudaGemm() = default;
bool CudaGemm::Prepare(const CudaProduct& product) { return impl_->PlanOf(product, impl_->choice()).possible; }
void CudaGemm::Run(const CudaProduct& product, const void* a, const void* b, const void* c, void* d, void* bias,
                   void* mask, device::Stream stream) {
  impl_->Run(impl_->PlanOf(product, Choice::kLibrary), a, b, c, d, bias, mask,
             static_cast<cudaStream_t>(stream.native));
}
const std::string& CudaGemm::library() const { return impl_->library().summary; }
CudaGemm::WholeList CudaGemm::CompareWithWholeList() { return impl_->CompareWithWholeList(); }
CudaGemm::Timing CudaGemm::TimingOf(const CudaProduct& product) const { return impl_->TimingOf(product); }

}  // namespace portolan::kernels::cuda
