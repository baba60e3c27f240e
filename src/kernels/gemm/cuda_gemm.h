#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/stream.h"
#include "kernels/gemm/gemm.h"

// Products on an NVIDIA GPU: cuBLASLt's kernels where the library is found when the program starts, tiles of our own
// where it is not.
namespace portolan::kernels::cuda {

// How operands are multiplied, and what A and B hold: fp32 for kFp32 and kTf32, bf16 for kBf16. Sums are fp32.
enum class ProductMath : int32_t { kFp32, kTf32, kBf16 };

// What is done with the product before it is stored, D [M, N].
enum class Epilogue : int32_t {
  kNone,
  kBias,          // + bias [N], of the type of D
  kBiasRelu,      // max(0, product + bias)
  kBiasReluMask,  // the same, and which of them were above 0, a bit each, for kReluGradient
  kReluGradient,  // product where the mask is set, else 0; bias [N] receives the column sums of D. beta = 0
};

struct CudaProduct {
  int64_t m = 0, n = 0, k = 0;
  Transpose a_transposed = Transpose::kNo, b_transposed = Transpose::kNo;  // as GemmProblem
  int64_t lda = 0, ldb = 0, ldd = 0;
  float beta = 0;
  ProductMath math = ProductMath::kFp32;
  bool fp32_out = true;  // D and C; else of the type of A and B
  Epilogue epilogue = Epilogue::kNone;

  bool operator==(const CudaProduct&) const = default;
};
// Bits from one row of a mask to the next, for N columns.
inline int64_t MaskStride(int64_t n) { return (n + 127) / 128 * 128; }

// D = op(A) op(B) + beta C, C of the layout of D and maybe D itself. Not thread-safe; one stream at a time.
class CudaGemm {
 public:
  // kLibrary: the first of the library's list; kMeasured: the fastest of it, timed by Prepare.
  enum class Choice { kLibrary, kMeasured };
  explicit CudaGemm(Choice choice);
  ~CudaGemm();
  CudaGemm(const CudaGemm&) = delete;
  CudaGemm& operator=(const CudaGemm&) = delete;

  // Finds the kernel of a product; with kMeasured it times the library's list on memory of its own, where the device
  // has so much, and waits. False where nobody here can do the product, which happens with kBiasReluMask and
  // kReluGradient only.
  bool Prepare(const CudaProduct& product);
  // Queues the product. Prepares it with the library's first choice when it is new.
  void Run(const CudaProduct& product, const void* a, const void* b, const void* c, void* d, void* bias, void* mask,
           device::Stream stream);
  // One line: the library and its version, or why there is none.
  const std::string& library() const;
  // Times that Prepare took for a product: of the kernel taken and of the library's first, in seconds. 0 where nothing
  // was timed.
  struct Timing {
    double taken_s = 0, first_s = 0;
    int listed = 0;
  };
  Timing TimingOf(const CudaProduct& product) const;
  // Times up to 64 of the library's list for every product prepared so far, whose Prepare considers the first eight:
  // seconds of the fastest of the first eight and of all, each summed over the products. Waits.
  struct WholeList {
    double taken_s = 0, best_s = 0;
    int products = 0, kernels = 0;
  };
  WholeList CompareWithWholeList();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Tiles of our own: every type, layout and size; kNone, kBias and kBiasRelu.
void TiledProduct(const CudaProduct& product, const void* a, const void* b, const void* c, void* d, const void* bias,
                  device::Stream stream);

}  // namespace portolan::kernels::cuda
