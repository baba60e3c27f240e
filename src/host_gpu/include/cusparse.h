#pragma once

// The generic interface of cuSPARSE by plain loops: CSR, CSC and COO matrices, dense vectors and matrices, real values.
// Sums are made in double precision.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

enum cusparseStatus_t {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_NOT_INITIALIZED = 1,
  CUSPARSE_STATUS_ALLOC_FAILED = 2,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_ARCH_MISMATCH = 4,
  CUSPARSE_STATUS_MAPPING_ERROR = 5,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_INTERNAL_ERROR = 7,
  CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
  CUSPARSE_STATUS_ZERO_PIVOT = 9,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10,
  CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
};
enum cusparseOperation_t {
  CUSPARSE_OPERATION_NON_TRANSPOSE,
  CUSPARSE_OPERATION_TRANSPOSE,
  CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE
};
enum cusparseIndexType_t { CUSPARSE_INDEX_16U = 1, CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_INDEX_BASE_ONE };
enum cusparseOrder_t { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum cusparsePointerMode_t { CUSPARSE_POINTER_MODE_HOST, CUSPARSE_POINTER_MODE_DEVICE };
enum cusparseAction_t { CUSPARSE_ACTION_SYMBOLIC, CUSPARSE_ACTION_NUMERIC };
enum cusparseMatrixType_t {
  CUSPARSE_MATRIX_TYPE_GENERAL,
  CUSPARSE_MATRIX_TYPE_SYMMETRIC,
  CUSPARSE_MATRIX_TYPE_HERMITIAN,
  CUSPARSE_MATRIX_TYPE_TRIANGULAR
};
enum cusparseFillMode_t { CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER };
enum cusparseDiagType_t { CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_DIAG_TYPE_UNIT };
enum cusparseSpMatAttribute_t { CUSPARSE_SPMAT_FILL_MODE, CUSPARSE_SPMAT_DIAG_TYPE };
enum cusparseSolvePolicy_t { CUSPARSE_SOLVE_POLICY_NO_LEVEL, CUSPARSE_SOLVE_POLICY_USE_LEVEL };
enum cusparseSpMVAlg_t {
  CUSPARSE_SPMV_ALG_DEFAULT,
  CUSPARSE_SPMV_COO_ALG1,
  CUSPARSE_SPMV_CSR_ALG1,
  CUSPARSE_SPMV_CSR_ALG2,
  CUSPARSE_SPMV_COO_ALG2
};
enum cusparseSpMMAlg_t {
  CUSPARSE_SPMM_ALG_DEFAULT,
  CUSPARSE_SPMM_COO_ALG1,
  CUSPARSE_SPMM_COO_ALG2,
  CUSPARSE_SPMM_COO_ALG3,
  CUSPARSE_SPMM_COO_ALG4,
  CUSPARSE_SPMM_CSR_ALG1,
  CUSPARSE_SPMM_CSR_ALG2,
  CUSPARSE_SPMM_CSR_ALG3
};
enum cusparseSpGEMMAlg_t { CUSPARSE_SPGEMM_DEFAULT, CUSPARSE_SPGEMM_ALG1, CUSPARSE_SPGEMM_ALG2, CUSPARSE_SPGEMM_ALG3 };
enum cusparseSDDMMAlg_t { CUSPARSE_SDDMM_ALG_DEFAULT };
enum cusparseSpSVAlg_t { CUSPARSE_SPSV_ALG_DEFAULT };
enum cusparseSpSMAlg_t { CUSPARSE_SPSM_ALG_DEFAULT };
enum cusparseSparseToDenseAlg_t { CUSPARSE_SPARSETODENSE_ALG_DEFAULT };
enum cusparseDenseToSparseAlg_t { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT };
enum cusparseCsr2CscAlg_t { CUSPARSE_CSR2CSC_ALG_DEFAULT = 1, CUSPARSE_CSR2CSC_ALG1 = 1, CUSPARSE_CSR2CSC_ALG2 = 2 };

namespace portolan::gpu {

inline double LoadReal(cudaDataType type, const void* p, int64_t i) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(p)[i];
    case CUDA_R_64F:
      return static_cast<const double*>(p)[i];
    case CUDA_R_16F:
      return static_cast<double>(static_cast<float>(static_cast<const __half*>(p)[i]));
    case CUDA_R_16BF:
      return static_cast<double>(static_cast<float>(static_cast<const __nv_bfloat16*>(p)[i]));
    case CUDA_R_32I:
      return static_cast<const int*>(p)[i];
    case CUDA_R_8I:
      return static_cast<const signed char*>(p)[i];
    default:
      Unsupported("cuSPARSE with values of this type");
  }
}
inline void StoreReal(cudaDataType type, void* p, int64_t i, double value) {
  switch (type) {
    case CUDA_R_32F:
      static_cast<float*>(p)[i] = static_cast<float>(value);
      return;
    case CUDA_R_64F:
      static_cast<double*>(p)[i] = value;
      return;
    case CUDA_R_16F:
      static_cast<__half*>(p)[i] = __float2half(static_cast<float>(value));
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16(static_cast<float>(value));
      return;
    case CUDA_R_32I:
      static_cast<int*>(p)[i] = static_cast<int>(value);
      return;
    default:
      Unsupported("cuSPARSE with values of this type");
  }
}

struct Indices {
  void* data;
  cusparseIndexType_t type;
  int64_t operator[](int64_t i) const {
    return type == CUSPARSE_INDEX_64I ? static_cast<const int64_t*>(data)[i] : static_cast<const int*>(data)[i];
  }
  void Set(int64_t i, int64_t value) const {
    if (type == CUSPARSE_INDEX_64I) {
      static_cast<int64_t*>(data)[i] = value;
    } else {
      static_cast<int*>(data)[i] = static_cast<int>(value);
    }
  }
};

struct SparseMatrix {
  enum class Format { kCsr, kCsc, kCoo } format;
  int64_t rows, columns, nonzeros;
  Indices outer, inner;  // offsets (COO: rows), columns (CSC: rows)
  void* values;
  cudaDataType type;
  int64_t base;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;

  // use(row, column, place) for all stored elements, transposed if asked for.
  template <typename F>
  void ForEach(cusparseOperation_t op, F use) const {
    const bool turn = (op != CUSPARSE_OPERATION_NON_TRANSPOSE) != (format == Format::kCsc);
    const auto one = [&](int64_t a, int64_t b, int64_t k) { turn ? use(b, a, k) : use(a, b, k); };
    if (format == Format::kCoo) {
      for (int64_t k = 0; k < nonzeros; ++k) one(outer[k] - base, inner[k] - base, k);
      return;
    }
    const int64_t count = format == Format::kCsr ? rows : columns;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = outer[i] - base; k < outer[i + 1] - base; ++k) one(i, inner[k] - base, k);
    }
  }
};
struct DenseVector {
  int64_t size;
  void* values;
  cudaDataType type;
};
struct SparseVector {
  int64_t size, nonzeros;
  Indices indices;
  void* values;
  cudaDataType type;
  int64_t base;
};
struct DenseMatrix {
  int64_t rows, columns, stride;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
  int64_t Place(int64_t r, int64_t c, cusparseOperation_t op = CUSPARSE_OPERATION_NON_TRANSPOSE) const {
    if (op != CUSPARSE_OPERATION_NON_TRANSPOSE) std::swap(r, c);
    return order == CUSPARSE_ORDER_ROW ? r * stride + c : c * stride + r;
  }
};
struct SparseProduct {
  std::vector<int64_t> offsets, columns;
  std::vector<double> values;
};
struct SparseHandle {
  int unused;
};

// x of op(A) x = alpha b for a triangular A, one right-hand side: load(i) is b, store(i, x) takes x.
template <typename Load, typename Store>
void SolveTriangle(const SparseMatrix& a, cusparseOperation_t op, double alpha, Load load, Store store) {
  std::vector<std::vector<std::pair<int64_t, double>>> rows(static_cast<size_t>(a.rows));
  a.ForEach(op, [&](int64_t r, int64_t c, int64_t k) {
    rows[static_cast<size_t>(r)].push_back({c, LoadReal(a.type, a.values, k)});
  });
  const bool lower = (a.fill == CUSPARSE_FILL_MODE_LOWER) == (op == CUSPARSE_OPERATION_NON_TRANSPOSE);
  std::vector<double> x(static_cast<size_t>(a.rows));
  for (int64_t step = 0; step < a.rows; ++step) {
    const int64_t i = lower ? step : a.rows - 1 - step;
    double sum = alpha * load(i), diagonal = 1;
    for (const auto& [c, v] : rows[static_cast<size_t>(i)]) {
      if (c == i) diagonal = v;
      if (lower ? c < i : c > i) sum -= v * x[static_cast<size_t>(c)];
    }
    x[static_cast<size_t>(i)] = a.diagonal == CUSPARSE_DIAG_TYPE_UNIT ? sum : sum / diagonal;
    store(i, x[static_cast<size_t>(i)]);
  }
}

}  // namespace portolan::gpu

typedef portolan::gpu::SparseHandle* cusparseHandle_t;
typedef portolan::gpu::SparseMatrix* cusparseSpMatDescr_t;
typedef const portolan::gpu::SparseMatrix* cusparseConstSpMatDescr_t;
typedef portolan::gpu::DenseVector* cusparseDnVecDescr_t;
typedef portolan::gpu::SparseVector* cusparseSpVecDescr_t;
typedef portolan::gpu::DenseMatrix* cusparseDnMatDescr_t;
typedef portolan::gpu::SparseProduct* cusparseSpGEMMDescr_t;
typedef portolan::gpu::SparseHandle* cusparseSpSVDescr_t;
typedef portolan::gpu::SparseHandle* cusparseSpSMDescr_t;

#define PORTOLAN_SPARSE(NAME, PARAMETERS, ...) \
  inline cusparseStatus_t NAME PARAMETERS {    \
    __VA_ARGS__;                               \
    return CUSPARSE_STATUS_SUCCESS;            \
  }
PORTOLAN_SPARSE(cusparseCreate, (cusparseHandle_t * handle), *handle = new portolan::gpu::SparseHandle{})
PORTOLAN_SPARSE(cusparseDestroy, (cusparseHandle_t handle), delete handle)
PORTOLAN_SPARSE(cusparseSetStream, (cusparseHandle_t, cudaStream_t), )
PORTOLAN_SPARSE(cusparseSetPointerMode, (cusparseHandle_t, cusparsePointerMode_t), )
inline const char* cusparseGetErrorString(cusparseStatus_t s) {
  return s == CUSPARSE_STATUS_SUCCESS ? "success" : "cuSPARSE error";
}
inline const char* cusparseGetErrorName(cusparseStatus_t s) { return cusparseGetErrorString(s); }
PORTOLAN_SPARSE(cusparseCreateCsr,
                (cusparseSpMatDescr_t * m, int64_t rows, int64_t columns, int64_t nonzeros, void* offsets,
                 void* column_indices, void* values, cusparseIndexType_t offset_type, cusparseIndexType_t column_type,
                 cusparseIndexBase_t base, cudaDataType type),
                *m = new portolan::gpu::SparseMatrix{portolan::gpu::SparseMatrix::Format::kCsr,
                                                     rows,
                                                     columns,
                                                     nonzeros,
                                                     {offsets, offset_type},
                                                     {column_indices, column_type},
                                                     values,
                                                     type,
                                                     base})
PORTOLAN_SPARSE(cusparseCreateCsc,
                (cusparseSpMatDescr_t * m, int64_t rows, int64_t columns, int64_t nonzeros, void* offsets,
                 void* row_indices, void* values, cusparseIndexType_t offset_type, cusparseIndexType_t row_type,
                 cusparseIndexBase_t base, cudaDataType type),
                *m = new portolan::gpu::SparseMatrix{portolan::gpu::SparseMatrix::Format::kCsc,
                                                     rows,
                                                     columns,
                                                     nonzeros,
                                                     {offsets, offset_type},
                                                     {row_indices, row_type},
                                                     values,
                                                     type,
                                                     base})
PORTOLAN_SPARSE(cusparseCreateCoo,
                (cusparseSpMatDescr_t * m, int64_t rows, int64_t columns, int64_t nonzeros, void* row_indices,
                 void* column_indices, void* values, cusparseIndexType_t index_type, cusparseIndexBase_t base,
                 cudaDataType type),
                *m = new portolan::gpu::SparseMatrix{portolan::gpu::SparseMatrix::Format::kCoo,
                                                     rows,
                                                     columns,
                                                     nonzeros,
                                                     {row_indices, index_type},
                                                     {column_indices, index_type},
                                                     values,
                                                     type,
                                                     base})
PORTOLAN_SPARSE(cusparseDestroySpMat, (cusparseConstSpMatDescr_t m), delete m)
PORTOLAN_SPARSE(cusparseCsrSetPointers, (cusparseSpMatDescr_t m, void* offsets, void* columns, void* values),
                m->outer.data = offsets, m->inner.data = columns, m->values = values)
PORTOLAN_SPARSE(cusparseCooSetPointers, (cusparseSpMatDescr_t m, void* rows, void* columns, void* values),
                m->outer.data = rows, m->inner.data = columns, m->values = values)
PORTOLAN_SPARSE(cusparseSpMatGetSize, (cusparseConstSpMatDescr_t m, int64_t* rows, int64_t* columns, int64_t* nonzeros),
                *rows = m->rows, *columns = m->columns, *nonzeros = m->nonzeros)
PORTOLAN_SPARSE(cusparseSpMatSetValues, (cusparseSpMatDescr_t m, void* values), m->values = values)
inline cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t m, cusparseSpMatAttribute_t attribute,
                                                  const void* value, size_t) {
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) m->fill = *static_cast<const cusparseFillMode_t*>(value);
  if (attribute == CUSPARSE_SPMAT_DIAG_TYPE) m->diagonal = *static_cast<const cusparseDiagType_t*>(value);
  return CUSPARSE_STATUS_SUCCESS;
}
PORTOLAN_SPARSE(cusparseCreateDnVec, (cusparseDnVecDescr_t * v, int64_t size, void* values, cudaDataType type),
                *v = new portolan::gpu::DenseVector{size, values, type})
PORTOLAN_SPARSE(cusparseDestroyDnVec, (cusparseDnVecDescr_t v), delete v)
PORTOLAN_SPARSE(cusparseDnVecSetValues, (cusparseDnVecDescr_t v, void* values), v->values = values)
PORTOLAN_SPARSE(cusparseCreateDnMat,
                (cusparseDnMatDescr_t * m, int64_t rows, int64_t columns, int64_t stride, void* values,
                 cudaDataType type, cusparseOrder_t order),
                *m = new portolan::gpu::DenseMatrix{rows, columns, stride, values, type, order})
PORTOLAN_SPARSE(cusparseDestroyDnMat, (cusparseDnMatDescr_t m), delete m)
PORTOLAN_SPARSE(cusparseCreateSpVec,
                (cusparseSpVecDescr_t * v, int64_t size, int64_t nonzeros, void* indices, void* values,
                 cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type),
                *v = new portolan::gpu::SparseVector{size, nonzeros, {indices, index_type}, values, type, base})
PORTOLAN_SPARSE(cusparseDestroySpVec, (cusparseSpVecDescr_t v), delete v)

inline cusparseStatus_t cusparseGather(cusparseHandle_t, cusparseDnVecDescr_t y, cusparseSpVecDescr_t x) {
  for (int64_t i = 0; i < x->nonzeros; ++i) {
    portolan::gpu::StoreReal(x->type, x->values, i,
                             portolan::gpu::LoadReal(y->type, y->values, x->indices[i] - x->base));
  }
  return CUSPARSE_STATUS_SUCCESS;
}

PORTOLAN_SPARSE(cusparseSpMV_bufferSize,
                (cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t, cusparseDnVecDescr_t,
                 const void*, cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, size_t* bytes),
                *bytes = 256)
PORTOLAN_SPARSE(cusparseSpMV_preprocess,
                (cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t, cusparseDnVecDescr_t,
                 const void*, cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, void*), )
inline cusparseStatus_t cusparseSpMV(cusparseHandle_t, cusparseOperation_t op, const void* alpha,
                                     cusparseConstSpMatDescr_t a, cusparseDnVecDescr_t x, const void* beta,
                                     cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t, void*) {
  using namespace portolan::gpu;
  std::vector<double> sums(static_cast<size_t>(y->size));
  a->ForEach(op, [&](int64_t r, int64_t c, int64_t k) {
    sums[static_cast<size_t>(r)] += LoadReal(a->type, a->values, k) * LoadReal(x->type, x->values, c);
  });
  const double scale = LoadReal(compute, alpha, 0), keep = LoadReal(compute, beta, 0);
  for (int64_t i = 0; i < y->size; ++i) {
    const double before = keep == 0 ? 0 : keep * LoadReal(y->type, y->values, i);
    StoreReal(y->type, y->values, i, scale * sums[static_cast<size_t>(i)] + before);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

PORTOLAN_SPARSE(cusparseSpMM_bufferSize,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                 cusparseDnMatDescr_t, const void*, cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t,
                 size_t* bytes),
                *bytes = 256)
PORTOLAN_SPARSE(cusparseSpMM_preprocess,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                 cusparseDnMatDescr_t, const void*, cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t, void*), )
inline cusparseStatus_t cusparseSpMM(cusparseHandle_t, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                     const void* alpha, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b,
                                     const void* beta, cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpMMAlg_t,
                                     void*) {
  using namespace portolan::gpu;
  const double scale = LoadReal(compute, alpha, 0), keep = LoadReal(compute, beta, 0);
  std::vector<double> sums(static_cast<size_t>(c->rows * c->columns));
  a->ForEach(op_a, [&](int64_t r, int64_t l, int64_t k) {
    const double value = LoadReal(a->type, a->values, k);
    for (int64_t j = 0; j < c->columns; ++j) {
      sums[static_cast<size_t>(r * c->columns + j)] += value * LoadReal(b->type, b->values, b->Place(l, j, op_b));
    }
  });
  for (int64_t r = 0; r < c->rows; ++r) {
    for (int64_t j = 0; j < c->columns; ++j) {
      const double before = keep == 0 ? 0 : keep * LoadReal(c->type, c->values, c->Place(r, j));
      StoreReal(c->type, c->values, c->Place(r, j), scale * sums[static_cast<size_t>(r * c->columns + j)] + before);
    }
  }
  return CUSPARSE_STATUS_SUCCESS;
}

PORTOLAN_SPARSE(cusparseSDDMM_bufferSize,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseDnMatDescr_t,
                 cusparseDnMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSDDMMAlg_t,
                 size_t* bytes),
                *bytes = 256)
PORTOLAN_SPARSE(cusparseSDDMM_preprocess,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseDnMatDescr_t,
                 cusparseDnMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSDDMMAlg_t, void*), )
inline cusparseStatus_t cusparseSDDMM(cusparseHandle_t, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                      const void* alpha, cusparseDnMatDescr_t a, cusparseDnMatDescr_t b,
                                      const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                      cusparseSDDMMAlg_t, void*) {
  using namespace portolan::gpu;
  const double scale = LoadReal(compute, alpha, 0), keep = LoadReal(compute, beta, 0);
  const int64_t inner = op_a == CUSPARSE_OPERATION_NON_TRANSPOSE ? a->columns : a->rows;
  c->ForEach(CUSPARSE_OPERATION_NON_TRANSPOSE, [&](int64_t r, int64_t j, int64_t k) {
    double sum = 0;
    for (int64_t l = 0; l < inner; ++l) {
      sum += LoadReal(a->type, a->values, a->Place(r, l, op_a)) * LoadReal(b->type, b->values, b->Place(l, j, op_b));
    }
    StoreReal(c->type, c->values, k, scale * sum + (keep == 0 ? 0 : keep * LoadReal(c->type, c->values, k)));
  });
  return CUSPARSE_STATUS_SUCCESS;
}

// C = alpha A B + beta C for sparse matrices: computed at the call that has a buffer, copied at the last.
PORTOLAN_SPARSE(cusparseSpGEMM_createDescr, (cusparseSpGEMMDescr_t * d), *d = new portolan::gpu::SparseProduct)
PORTOLAN_SPARSE(cusparseSpGEMM_destroyDescr, (cusparseSpGEMMDescr_t d), delete d)
PORTOLAN_SPARSE(cusparseSpGEMM_workEstimation,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                 cusparseConstSpMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSpGEMMAlg_t,
                 cusparseSpGEMMDescr_t, size_t* bytes, void*),
                *bytes = 256)
inline cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                               const void* alpha, cusparseConstSpMatDescr_t a,
                                               cusparseConstSpMatDescr_t b, const void*, cusparseSpMatDescr_t c,
                                               cudaDataType compute, cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t d,
                                               size_t* bytes, void* buffer) {
  using namespace portolan::gpu;
  *bytes = 256;
  if (buffer == nullptr) return CUSPARSE_STATUS_SUCCESS;
  const auto rows_of = [](const SparseMatrix& m, cusparseOperation_t op, int64_t count) {
    std::vector<std::vector<std::pair<int64_t, double>>> rows(static_cast<size_t>(count));
    m.ForEach(op, [&](int64_t r, int64_t j, int64_t k) {
      rows[static_cast<size_t>(r)].push_back({j, LoadReal(m.type, m.values, k)});
    });
    return rows;
  };
  const auto left = rows_of(*a, op_a, c->rows);
  const auto right = rows_of(*b, op_b, op_b == CUSPARSE_OPERATION_NON_TRANSPOSE ? b->rows : b->columns);
  *d = {};
  d->offsets.push_back(0);
  const double scale = LoadReal(compute, alpha, 0);
  for (const auto& row : left) {
    std::map<int64_t, double> sums;
    for (const auto& [l, v] : row) {
      for (const auto& [j, w] : right[static_cast<size_t>(l)]) sums[j] += v * w;
    }
    for (const auto& [j, sum] : sums) d->columns.push_back(j), d->values.push_back(scale * sum);
    d->offsets.push_back(static_cast<int64_t>(d->columns.size()));
  }
  c->nonzeros = static_cast<int64_t>(d->columns.size());
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSpGEMM_copy(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*,
                                            cusparseConstSpMatDescr_t, cusparseConstSpMatDescr_t, const void*,
                                            cusparseSpMatDescr_t c, cudaDataType, cusparseSpGEMMAlg_t,
                                            cusparseSpGEMMDescr_t d) {
  for (size_t i = 0; i < d->offsets.size(); ++i) c->outer.Set(static_cast<int64_t>(i), d->offsets[i] + c->base);
  for (size_t k = 0; k < d->columns.size(); ++k) {
    c->inner.Set(static_cast<int64_t>(k), d->columns[k] + c->base);
    portolan::gpu::StoreReal(c->type, c->values, static_cast<int64_t>(k), d->values[k]);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

PORTOLAN_SPARSE(cusparseSpSV_createDescr, (cusparseSpSVDescr_t * d), *d = new portolan::gpu::SparseHandle{})
PORTOLAN_SPARSE(cusparseSpSV_destroyDescr, (cusparseSpSVDescr_t d), delete d)
PORTOLAN_SPARSE(cusparseSpSV_bufferSize,
                (cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t, cusparseDnVecDescr_t,
                 cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t, size_t* bytes),
                *bytes = 256)
PORTOLAN_SPARSE(cusparseSpSV_analysis,
                (cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t, cusparseDnVecDescr_t,
                 cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t, void* = nullptr), )
inline cusparseStatus_t cusparseSpSV_solve(cusparseHandle_t, cusparseOperation_t op, const void* alpha,
                                           cusparseConstSpMatDescr_t a, cusparseDnVecDescr_t x, cusparseDnVecDescr_t y,
                                           cudaDataType compute, cusparseSpSVAlg_t, cusparseSpSVDescr_t,
                                           void* = nullptr) {
  using namespace portolan::gpu;
  SolveTriangle(
      *a, op, LoadReal(compute, alpha, 0), [&](int64_t i) { return LoadReal(x->type, x->values, i); },
      [&](int64_t i, double value) { StoreReal(y->type, y->values, i, value); });
  return CUSPARSE_STATUS_SUCCESS;
}
PORTOLAN_SPARSE(cusparseSpSM_createDescr, (cusparseSpSMDescr_t * d), *d = new portolan::gpu::SparseHandle{})
PORTOLAN_SPARSE(cusparseSpSM_destroyDescr, (cusparseSpSMDescr_t d), delete d)
PORTOLAN_SPARSE(cusparseSpSM_bufferSize,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                 cusparseDnMatDescr_t, cusparseDnMatDescr_t, cudaDataType, cusparseSpSMAlg_t, cusparseSpSMDescr_t,
                 size_t* bytes),
                *bytes = 256)
PORTOLAN_SPARSE(cusparseSpSM_analysis,
                (cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                 cusparseDnMatDescr_t, cusparseDnMatDescr_t, cudaDataType, cusparseSpSMAlg_t, cusparseSpSMDescr_t,
                 void* = nullptr), )
inline cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                           const void* alpha, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b,
                                           cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t,
                                           cusparseSpSMDescr_t, void* = nullptr) {
  using namespace portolan::gpu;
  for (int64_t j = 0; j < c->columns; ++j) {
    SolveTriangle(
        *a, op_a, LoadReal(compute, alpha, 0),
        [&](int64_t i) { return LoadReal(b->type, b->values, b->Place(i, j, op_b)); },
        [&](int64_t i, double value) { StoreReal(c->type, c->values, c->Place(i, j), value); });
  }
  return CUSPARSE_STATUS_SUCCESS;
}

PORTOLAN_SPARSE(cusparseSparseToDense_bufferSize,
                (cusparseHandle_t, cusparseConstSpMatDescr_t, cusparseDnMatDescr_t, cusparseSparseToDenseAlg_t,
                 size_t* bytes),
                *bytes = 256)
inline cusparseStatus_t cusparseSparseToDense(cusparseHandle_t, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b,
                                              cusparseSparseToDenseAlg_t, void*) {
  using namespace portolan::gpu;
  for (int64_t r = 0; r < b->rows; ++r) {
    for (int64_t c = 0; c < b->columns; ++c) StoreReal(b->type, b->values, b->Place(r, c), 0);
  }
  a->ForEach(CUSPARSE_OPERATION_NON_TRANSPOSE, [&](int64_t r, int64_t c, int64_t k) {
    StoreReal(b->type, b->values, b->Place(r, c), LoadReal(a->type, a->values, k));
  });
  return CUSPARSE_STATUS_SUCCESS;
}
PORTOLAN_SPARSE(cusparseDenseToSparse_bufferSize,
                (cusparseHandle_t, cusparseDnMatDescr_t, cusparseSpMatDescr_t, cusparseDenseToSparseAlg_t,
                 size_t* bytes),
                *bytes = 256)
namespace portolan::gpu {
// Counts, and writes where the places for columns and values are known.
inline void DenseToCsr(const DenseMatrix& a, SparseMatrix* b, bool write) {
  if (b->format != SparseMatrix::Format::kCsr) Unsupported("cusparseDenseToSparse to another format than CSR");
  int64_t count = 0;
  b->outer.Set(0, b->base);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < a.columns; ++c) {
      const double value = LoadReal(a.type, a.values, a.Place(r, c));
      if (value == 0) continue;
      if (write) b->inner.Set(count, c + b->base), StoreReal(b->type, b->values, count, value);
      ++count;
    }
    b->outer.Set(r + 1, count + b->base);
  }
  b->nonzeros = count;
}
}  // namespace portolan::gpu
PORTOLAN_SPARSE(cusparseDenseToSparse_analysis,
                (cusparseHandle_t, cusparseDnMatDescr_t a, cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t, void*),
                portolan::gpu::DenseToCsr(*a, b, false))
PORTOLAN_SPARSE(cusparseDenseToSparse_convert,
                (cusparseHandle_t, cusparseDnMatDescr_t a, cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t, void*),
                portolan::gpu::DenseToCsr(*a, b, true))

PORTOLAN_SPARSE(cusparseCsr2cscEx2_bufferSize,
                (cusparseHandle_t, int, int, int, const void*, const int*, const int*, void*, int*, int*, cudaDataType,
                 cusparseAction_t, cusparseIndexBase_t, cusparseCsr2CscAlg_t, size_t* bytes),
                *bytes = 256)
inline cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t, int rows, int columns, int, const void* values,
                                           const int* offsets, const int* column_indices, void* csc_values,
                                           int* csc_offsets, int* csc_rows, cudaDataType type, cusparseAction_t,
                                           cusparseIndexBase_t base, cusparseCsr2CscAlg_t, void*) {
  std::vector<int> next(static_cast<size_t>(columns) + 1);
  for (int k = 0; k < offsets[rows] - base; ++k) ++next[static_cast<size_t>(column_indices[k] - base) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (int c = 0; c <= columns; ++c) csc_offsets[c] = next[static_cast<size_t>(c)] + base;
  for (int r = 0; r < rows; ++r) {
    for (int k = offsets[r] - base; k < offsets[r + 1] - base; ++k) {
      const int to = next[static_cast<size_t>(column_indices[k] - base)]++;
      csc_rows[to] = r + base;
      portolan::gpu::StoreReal(type, csc_values, to, portolan::gpu::LoadReal(type, values, k));
    }
  }
  return CUSPARSE_STATUS_SUCCESS;
}

struct PortolanMatrixKind {
  cusparseMatrixType_t type;
  cusparseIndexBase_t base;
  cusparseFillMode_t fill;
  cusparseDiagType_t diagonal;
};
typedef PortolanMatrixKind* cusparseMatDescr_t;
PORTOLAN_SPARSE(cusparseCreateMatDescr, (cusparseMatDescr_t * d), *d = new PortolanMatrixKind{})
PORTOLAN_SPARSE(cusparseDestroyMatDescr, (cusparseMatDescr_t d), delete d)
PORTOLAN_SPARSE(cusparseSetMatType, (cusparseMatDescr_t d, cusparseMatrixType_t type), d->type = type)
PORTOLAN_SPARSE(cusparseSetMatIndexBase, (cusparseMatDescr_t d, cusparseIndexBase_t base), d->base = base)
PORTOLAN_SPARSE(cusparseSetMatFillMode, (cusparseMatDescr_t d, cusparseFillMode_t fill), d->fill = fill)
PORTOLAN_SPARSE(cusparseSetMatDiagType, (cusparseMatDescr_t d, cusparseDiagType_t type), d->diagonal = type)
#undef PORTOLAN_SPARSE
