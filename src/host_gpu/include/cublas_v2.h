#pragma once

// cuBLAS by plain loops. Matrices are stored by columns, as in BLAS.

#include <cmath>
#include <vector>

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
typedef cublasStatus_t cublasStatus;
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
struct PortolanBlas {
  int unused;
};
typedef PortolanBlas* cublasHandle_t;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return *handle = new PortolanBlas{}, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  return *version = 120600, CUBLAS_STATUS_SUCCESS;
}
inline const char* cublasGetStatusString(cublasStatus_t) { return "cuBLAS status"; }
inline const char* cublasGetStatusName(cublasStatus_t) { return "cuBLAS status"; }

inline cublasStatus_t cublasSetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  for (int i = 0; i < n; ++i) {
    memcpy(static_cast<char*>(y) + static_cast<ptrdiff_t>(i) * incy * bytes,
           static_cast<const char*>(x) + static_cast<ptrdiff_t>(i) * incx * bytes, static_cast<size_t>(bytes));
  }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  portolan::gpu::Observe(x, static_cast<size_t>(n) * static_cast<size_t>(incx * bytes), __builtin_FILE(),
                         __builtin_LINE());
  return cublasSetVector(n, bytes, x, incx, y, incy);
}
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  for (int j = 0; j < columns; ++j) {
    memcpy(static_cast<char*>(b) + static_cast<ptrdiff_t>(j) * ldb * bytes,
           static_cast<const char*>(a) + static_cast<ptrdiff_t>(j) * lda * bytes,
           static_cast<size_t>(rows) * static_cast<size_t>(bytes));
  }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  return cublasSetMatrix(rows, columns, bytes, a, lda, b, ldb);
}

namespace portolan::gpu {

template <typename Sum, typename In, typename Out, typename Scale>
cublasStatus_t Gemm(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, Scale alpha, const In* a,
                    int lda, const In* b, int ldb, Scale beta, Out* c, int ldc) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      Sum sum = 0;
      for (int l = 0; l < k; ++l) {
        const In x =
            op_a == CUBLAS_OP_N ? a[i + static_cast<ptrdiff_t>(l) * lda] : a[l + static_cast<ptrdiff_t>(i) * lda];
        const In y =
            op_b == CUBLAS_OP_N ? b[l + static_cast<ptrdiff_t>(j) * ldb] : b[j + static_cast<ptrdiff_t>(l) * ldb];
        sum += static_cast<Sum>(x) * static_cast<Sum>(y);
      }
      Out& out = c[i + static_cast<ptrdiff_t>(j) * ldc];
      const Sum before = static_cast<Sum>(beta) == Sum(0) ? Sum(0) : static_cast<Sum>(beta) * static_cast<Sum>(out);
      out = static_cast<Out>(static_cast<Sum>(alpha) * sum + before);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace portolan::gpu

#define PORTOLAN_GEMM(NAME, T, SUM)                                                                                  \
  inline cublasStatus_t cublas##NAME##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
                                           int k, const T* alpha, const T* a, int lda, const T* b, int ldb,          \
                                           const T* beta, T* c, int ldc) {                                           \
    return portolan::gpu::Gemm<SUM>(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);                         \
  }                                                                                                                  \
  inline cublasStatus_t cublas##NAME##gemmStridedBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, \
                                                         int m, int n, int k, const T* alpha, const T* a, int lda,   \
                                                         long long sa, const T* b, int ldb, long long sb,            \
                                                         const T* beta, T* c, int ldc, long long sc, int count) {    \
    for (int i = 0; i < count; ++i) {                                                                                \
      portolan::gpu::Gemm<SUM>(ta, tb, m, n, k, *alpha, a + i * sa, lda, b + i * sb, ldb, *beta, c + i * sc, ldc);   \
    }                                                                                                                \
    return CUBLAS_STATUS_SUCCESS;                                                                                    \
  }                                                                                                                  \
  inline cublasStatus_t cublas##NAME##gemmBatched(                                                                   \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha,               \
      const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[], int ldc, int count) {   \
    for (int i = 0; i < count; ++i) {                                                                                \
      portolan::gpu::Gemm<SUM>(ta, tb, m, n, k, *alpha, a[i], lda, b[i], ldb, *beta, c[i], ldc);                     \
    }                                                                                                                \
    return CUBLAS_STATUS_SUCCESS;                                                                                    \
  }
PORTOLAN_GEMM(S, float, float)
PORTOLAN_GEMM(D, double, double)
PORTOLAN_GEMM(H, __half, float)
#undef PORTOLAN_GEMM

#define PORTOLAN_BLAS1(S, T)                                                                                           \
  inline cublasStatus_t cublas##S##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int incx, T* y, int incy) { \
    for (int i = 0; i < n; ++i) y[static_cast<ptrdiff_t>(i) * incy] += *alpha * x[static_cast<ptrdiff_t>(i) * incx];   \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##scal(cublasHandle_t, int n, const T* alpha, T* x, int incx) {                       \
    for (int i = 0; i < n; ++i) x[static_cast<ptrdiff_t>(i) * incx] *= *alpha;                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##copy(cublasHandle_t, int n, const T* x, int incx, T* y, int incy) {                 \
    for (int i = 0; i < n; ++i) y[static_cast<ptrdiff_t>(i) * incy] = x[static_cast<ptrdiff_t>(i) * incx];             \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##dot(cublasHandle_t, int n, const T* x, int incx, const T* y, int incy, T* result) { \
    T sum = 0;                                                                                                         \
    for (int i = 0; i < n; ++i) sum += x[static_cast<ptrdiff_t>(i) * incx] * y[static_cast<ptrdiff_t>(i) * incy];      \
    *result = sum;                                                                                                     \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##nrm2(cublasHandle_t, int n, const T* x, int incx, T* result) {                      \
    double sum = 0;                                                                                                    \
    for (int i = 0; i < n; ++i)                                                                                        \
      sum += double(x[static_cast<ptrdiff_t>(i) * incx]) * x[static_cast<ptrdiff_t>(i) * incx];                        \
    *result = static_cast<T>(std::sqrt(sum));                                                                          \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##asum(cublasHandle_t, int n, const T* x, int incx, T* result) {                      \
    T sum = 0;                                                                                                         \
    for (int i = 0; i < n; ++i) sum += std::abs(x[static_cast<ptrdiff_t>(i) * incx]);                                  \
    *result = sum;                                                                                                     \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublasI##S##amax(cublasHandle_t, int n, const T* x, int incx, int* result) {                   \
    int best = 0;                                                                                                      \
    for (int i = 1; i < n; ++i) {                                                                                      \
      if (std::abs(x[static_cast<ptrdiff_t>(i) * incx]) > std::abs(x[static_cast<ptrdiff_t>(best) * incx])) best = i;  \
    }                                                                                                                  \
    *result = n > 0 ? best + 1 : 0;                                                                                    \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##gemv(cublasHandle_t, cublasOperation_t op, int m, int n, const T* alpha,            \
                                        const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {    \
    const int rows = op == CUBLAS_OP_N ? m : n;                                                                        \
    const int inner = op == CUBLAS_OP_N ? n : m;                                                                       \
    for (int i = 0; i < rows; ++i) {                                                                                   \
      T sum = 0;                                                                                                       \
      for (int l = 0; l < inner; ++l) {                                                                                \
        sum += (op == CUBLAS_OP_N ? a[i + static_cast<ptrdiff_t>(l) * lda] : a[l + static_cast<ptrdiff_t>(i) * lda]) * \
               x[static_cast<ptrdiff_t>(l) * incx];                                                                    \
      }                                                                                                                \
      T& out = y[static_cast<ptrdiff_t>(i) * incy];                                                                    \
      out = *alpha * sum + (*beta == 0 ? 0 : *beta * out);                                                             \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
PORTOLAN_BLAS1(S, float)
PORTOLAN_BLAS1(D, double)
#undef PORTOLAN_BLAS1

namespace portolan::gpu {
// One type for each side of a product with types known when it runs.
template <typename F>
bool WithType(cudaDataType type, F use) {
  switch (type) {
    case CUDA_R_16F:
      return use(__half{}), true;
    case CUDA_R_16BF:
      return use(__nv_bfloat16{}), true;
    case CUDA_R_32F:
      return use(float{}), true;
    case CUDA_R_64F:
      return use(double{}), true;
    case CUDA_R_8I:
      return use(static_cast<signed char>(0)), true;
    case CUDA_R_32I:
      return use(int{}), true;
    default:
      return false;
  }
}
}  // namespace portolan::gpu

inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m,
                                                 int n, int k, const void* alpha, const void* a, cudaDataType type_a,
                                                 int lda, long long sa, const void* b, cudaDataType type_b, int ldb,
                                                 long long sb, const void* beta, void* c, cudaDataType type_c, int ldc,
                                                 long long sc, int count, cublasComputeType_t compute,
                                                 cublasGemmAlgo_t) {
  if (type_a != type_b) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto scale = [&](const void* p) -> double {
    switch (compute) {
      case CUBLAS_COMPUTE_16F:
        return static_cast<float>(*static_cast<const __half*>(p));
      case CUBLAS_COMPUTE_64F:
        return *static_cast<const double*>(p);
      case CUBLAS_COMPUTE_32I:
        return *static_cast<const int*>(p);
      default:
        return *static_cast<const float*>(p);
    }
  };
  bool known = false;
  portolan::gpu::WithType(type_a, [&](auto in) {
    known = portolan::gpu::WithType(type_c, [&](auto out) {
      using In = decltype(in);
      using Out = decltype(out);
      for (int i = 0; i < count; ++i) {
        portolan::gpu::Gemm<double>(ta, tb, m, n, k, scale(alpha), static_cast<const In*>(a) + i * sa, lda,
                                    static_cast<const In*>(b) + i * sb, ldb, scale(beta), static_cast<Out*>(c) + i * sc,
                                    ldc);
      }
    });
  });
  return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                   int k, const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c,
                                   int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                    type_c, ldc, 0, 1, compute, algorithm);
}

#include "portolan_gpu/blas_solve.h"
