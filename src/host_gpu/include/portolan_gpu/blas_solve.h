#pragma once

// The solvers of cuBLAS: least squares and LU of many small matrices, triangles, sums of matrices.

#include <cmath>
#include <complex>
#include <type_traits>
#include <vector>

namespace portolan::gpu {

template <typename T>
struct BlasNumber {
  using type = T;
};
template <>
struct BlasNumber<float2> {
  using type = std::complex<float>;
};
template <>
struct BlasNumber<double2> {
  using type = std::complex<double>;
};
inline float Conjugate(float x) { return x; }
inline double Conjugate(double x) { return x; }
template <typename T>
std::complex<T> Conjugate(std::complex<T> x) {
  return std::conj(x);
}

// min |C - A X| for m >= n by Householder's reflections; X comes in the first n rows of C, R in A.
template <typename T>
void LeastSquares(int m, int n, int right_sides, T* a, int lda, T* c, int ldc) {
  const auto at = [&](int i, int j) -> T& { return a[i + static_cast<ptrdiff_t>(j) * lda]; };
  const auto right = [&](int i, int j) -> T& { return c[i + static_cast<ptrdiff_t>(j) * ldc]; };
  std::vector<T> v(static_cast<size_t>(m));
  for (int k = 0; k < n; ++k) {
    double norm = 0;
    for (int i = k; i < m; ++i) norm += std::norm(std::complex<double>(at(i, k)));
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    const double size = std::abs(std::complex<double>(at(k, k)));
    const T phase = size == 0 ? T(1) : T(at(k, k) / T(size));
    double length = 0;
    for (int i = k; i < m; ++i) {
      v[static_cast<size_t>(i)] = i == k ? at(k, k) + phase * T(norm) : at(i, k);
      length += std::norm(std::complex<double>(v[static_cast<size_t>(i)]));
    }
    const auto reflect = [&](auto&& column, int j) {
      T sum = 0;
      for (int i = k; i < m; ++i) sum += Conjugate(v[static_cast<size_t>(i)]) * column(i, j);
      sum *= T(2 / length);
      for (int i = k; i < m; ++i) column(i, j) -= sum * v[static_cast<size_t>(i)];
    };
    for (int j = k; j < n; ++j) reflect(at, j);
    for (int j = 0; j < right_sides; ++j) reflect(right, j);
  }
  for (int j = 0; j < right_sides; ++j) {
    for (int i = n - 1; i >= 0; --i) {
      T sum = right(i, j);
      for (int l = i + 1; l < n; ++l) sum -= at(i, l) * right(l, j);
      right(i, j) = sum / at(i, i);
    }
  }
}

// P A = L U in place with pivots from 1; nullptr: without pivoting. Returns 0, or the first zero pivot from 1.
template <typename T>
int FactorLu(int n, T* a, int lda, int* pivots) {
  const auto at = [&](int i, int j) -> T& { return a[i + static_cast<ptrdiff_t>(j) * lda]; };
  int info = 0;
  for (int k = 0; k < n; ++k) {
    int best = k;
    if (pivots != nullptr) {
      for (int i = k + 1; i < n; ++i) {
        if (std::abs(at(i, k)) > std::abs(at(best, k))) best = i;
      }
      pivots[k] = best + 1;
      for (int j = 0; best != k && j < n; ++j) std::swap(at(k, j), at(best, j));
    }
    if (at(k, k) == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int i = k + 1; i < n; ++i) {
      at(i, k) /= at(k, k);
      for (int j = k + 1; j < n; ++j) at(i, j) -= at(i, k) * at(k, j);
    }
  }
  return info;
}

}  // namespace portolan::gpu

#define PORTOLAN_SOLVERS(S, T)                                                                                         \
  inline cublasStatus_t cublas##S##gelsBatched(cublasHandle_t, cublasOperation_t op, int m, int n, int right_sides,    \
                                               T* const a[], int lda, T* const c[], int ldc, int* info, int* infos,    \
                                               int count) {                                                            \
    *info = 0;                                                                                                         \
    if (op != CUBLAS_OP_N || m < n) return CUBLAS_STATUS_NOT_SUPPORTED;                                                \
    using N = portolan::gpu::BlasNumber<T>::type;                                                                      \
    for (int i = 0; i < count; ++i) {                                                                                  \
      portolan::gpu::LeastSquares(m, n, right_sides, reinterpret_cast<N*>(a[i]), lda, reinterpret_cast<N*>(c[i]),      \
                                  ldc);                                                                                \
      if (infos != nullptr) infos[i] = 0;                                                                              \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##getrfBatched(cublasHandle_t, int n, T* const a[], int lda, int* pivots, int* infos, \
                                                int count) {                                                           \
    using N = portolan::gpu::BlasNumber<T>::type;                                                                      \
    for (int i = 0; i < count; ++i) {                                                                                  \
      infos[i] = portolan::gpu::FactorLu(n, reinterpret_cast<N*>(a[i]), lda,                                           \
                                         pivots == nullptr ? nullptr : pivots + static_cast<ptrdiff_t>(i) * n);        \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
PORTOLAN_SOLVERS(S, float)
PORTOLAN_SOLVERS(D, double)
PORTOLAN_SOLVERS(C, cuComplex)
PORTOLAN_SOLVERS(Z, cuDoubleComplex)
#undef PORTOLAN_SOLVERS

#define PORTOLAN_MATRICES(S, T)                                                                                        \
  inline cublasStatus_t cublas##S##geam(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n,      \
                                        const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, \
                                        int ldc) {                                                                     \
    for (int j = 0; j < n; ++j) {                                                                                      \
      for (int i = 0; i < m; ++i) {                                                                                    \
        const T x = *alpha == 0         ? T(0)                                                                         \
                    : ta == CUBLAS_OP_N ? a[i + static_cast<ptrdiff_t>(j) * lda]                                       \
                                        : a[j + static_cast<ptrdiff_t>(i) * lda];                                      \
        const T y = *beta == 0          ? T(0)                                                                         \
                    : tb == CUBLAS_OP_N ? b[i + static_cast<ptrdiff_t>(j) * ldb]                                       \
                                        : b[j + static_cast<ptrdiff_t>(i) * ldb];                                      \
        c[i + static_cast<ptrdiff_t>(j) * ldc] = *alpha * x + *beta * y;                                               \
      }                                                                                                                \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  inline cublasStatus_t cublas##S##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill,                  \
                                        cublasOperation_t op, cublasDiagType_t diagonal, int m, int n, const T* alpha, \
                                        const T* a, int lda, T* b, int ldb) {                                          \
    const auto at = [&](int i, int j) {                                                                                \
      return op == CUBLAS_OP_N ? a[i + static_cast<ptrdiff_t>(j) * lda] : a[j + static_cast<ptrdiff_t>(i) * lda];      \
    };                                                                                                                 \
    const bool left = side == CUBLAS_SIDE_LEFT;                                                                        \
    /* X A = B is A' X' = B'. */                                                                                       \
    const bool lower = ((fill == CUBLAS_FILL_MODE_LOWER) == (op == CUBLAS_OP_N)) == left;                              \
    const int size = left ? m : n, count = left ? n : m;                                                               \
    for (int j = 0; j < count; ++j) {                                                                                  \
      for (int step = 0; step < size; ++step) {                                                                        \
        const int i = lower ? step : size - 1 - step;                                                                  \
        const auto x = [&](int l) -> T& {                                                                              \
          return left ? b[l + static_cast<ptrdiff_t>(j) * ldb] : b[j + static_cast<ptrdiff_t>(l) * ldb];               \
        };                                                                                                             \
        T sum = *alpha * x(i);                                                                                         \
        for (int l = lower ? 0 : i + 1; l < (lower ? i : size); ++l) sum -= (left ? at(i, l) : at(l, i)) * x(l);       \
        x(i) = diagonal == CUBLAS_DIAG_UNIT ? sum : sum / at(i, i);                                                    \
      }                                                                                                                \
    }                                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
PORTOLAN_MATRICES(S, float)
PORTOLAN_MATRICES(D, double)
#undef PORTOLAN_MATRICES
