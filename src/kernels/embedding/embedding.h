#pragma once

#include <cstdint>

#include "device/host_device.h"

// Table-batched embedding lookup, and its backward pass fused with the optimizer.
//
// Bags: feature f of sample b owns the lookups offsets[f * batch + b] to offsets[f * batch + b + 1] (the layout of
// TorchRec's KeyedJaggedTensor). An empty bag pools to zero.
namespace portolan::kernels {

enum class RowFormat : int32_t {
  kFp32,
  kFp16,
  kBf16,
  kInt8,  // fp32 scale, fp32 bias, then one byte a column: value = scale * byte + bias
};
// Bytes from one row to the next: dim elements; kInt8: 8 + dim, rounded up to a multiple of 8.
PORTOLAN_HOST_DEVICE inline int64_t RowBytes(RowFormat format, int64_t dim) {
  if (format == RowFormat::kInt8) return 8 + (dim + 7) / 8 * 8;
  return dim * (format == RowFormat::kFp32 ? 4 : 2);
}

enum class BagPooling : int32_t { kSum, kMean, kNone };

enum class RowOptimizer : int32_t { kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kRowwiseAdam };
// fp32 values of optimizer state a row: 0, dim (sum of squares), 1 (sum of mean squares), 2 dim (m, then v), dim + 1
// (m, then one v).
PORTOLAN_HOST_DEVICE inline int64_t RowStateFloats(RowOptimizer optimizer, int64_t dim) {
  switch (optimizer) {
    case RowOptimizer::kSgd:
      return 0;
    case RowOptimizer::kAdagrad:
      return dim;
    case RowOptimizer::kRowwiseAdagrad:
      return 1;
    case RowOptimizer::kAdam:
      return 2 * dim;
    case RowOptimizer::kRowwiseAdam:
      return dim + 1;
  }
  return 0;
}

struct EmbeddingTable {
  void* rows = nullptr;    // [row_count] rows of RowBytes(format, dim), 8-byte aligned
  float* state = nullptr;  // [row_count, RowStateFloats(optimizer, dim)]; the forward pass does not read it
  int64_t row_count = 0;   // below 2^40
  int32_t dim = 0;
  RowFormat format = RowFormat::kFp32;
};

struct EmbeddingFeature {
  int32_t table = 0;  // index into EmbeddingBags::tables; several features may read one table
  BagPooling pooling = BagPooling::kSum;
  // Pooled output [batch, dim]: bag b at output + b * output_stride. kNone: lookup i of the feature (counted from its
  // first) at output + i * output_stride. In the backward pass the gradient of the same layout, which is only read.
  float* output = nullptr;
  int64_t output_stride = 0;
};

struct EmbeddingBags {
  const EmbeddingTable* tables = nullptr;
  int32_t table_count = 0;
  const EmbeddingFeature* features = nullptr;
  int32_t feature_count = 0;
  int64_t batch = 0;
  const int64_t* offsets = nullptr;  // [feature_count * batch + 1], ascending, offsets[0] = 0
  const int64_t* ids = nullptr;      // [lookups], each in [0, row_count) of its table: the caller checks
  const float* weights = nullptr;    // [lookups] factors of the rows, or null for 1. kMean divides by the bag's length
};

// output = sum over the bag of weight * row (kSum); divided by the number of lookups (kMean); each weight * row
// (kNone). fp32 sums in the order of the lookups: bit-equal for any number of threads.
//
// EmbeddingBackward: G of a row = sum over all its lookups, over all features of its table, of weight * gradient of the
// bag (/ bag length for kMean); then one optimizer step for every row that was looked up, exact for duplicates, in
// fp32:
//   kSgd             w -= lr G
//   kAdagrad         s += G^2;              w -= lr G / (sqrt(s) + eps)
//   kRowwiseAdagrad  s += mean(G^2);        w -= lr G / (sqrt(s) + eps)           (FBGEMM's exact_rowwise_adagrad)
//   kAdam            m = b1 m + (1 - b1) G; v = b2 v + (1 - b2) G^2;
//                    w -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)        (arXiv 1412.6980), t = step, from 1
//   kRowwiseAdam     as kAdam with one v a row, of mean(G^2)
// Rows not looked up keep their state: Adam here is the lazy one of sparse training. fp16 and bf16 rows are rounded
// back stochastically with RandomBits(RowKey(seed, table * 2^40 + row), column) of number_formats.h; int8 rows get the
// scale and bias of the new minimum and maximum and are rounded stochastically as floor(x + u), u in [0, 1). Every sum
// is in the order of features, then samples, in blocks of kHotRowBlock lookups whose sums are added in order: bit-equal
// for any number of threads.
struct RowUpdate {
  RowOptimizer optimizer = RowOptimizer::kSgd;
  float learning_rate = 0;
  float epsilon = 1e-8f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  int64_t step = 1;
  uint64_t seed = 0;         // should differ from step to step
  float gradient_scale = 1;  // G is multiplied by it before the update (clipping, accumulation)
};
constexpr int64_t kHotRowBlock = 1024;

// Scratch memory that EmbeddingBackward of `lookups` lookups needs, in bytes; 64-byte aligned.
int64_t EmbeddingBackwardWorkspaceBytes(const EmbeddingBags& bags, int64_t lookups);
int64_t EmbeddingBackwardSeparateWorkspaceBytes(const EmbeddingBags& bags, int64_t lookups);

namespace reference {
void EmbeddingForward(const EmbeddingBags& bags);
void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* workspace);
// weight_gradient[i] = dot(row of lookup i, gradient of its bag) (/ bag length for kMean). [lookups]
void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient);
// Sum over rows of |G|^2: what clipping by norm needs before the update.
double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* workspace);
}  // namespace reference
namespace cpu {
void EmbeddingForward(const EmbeddingBags& bags);
void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* workspace);
// The same step as frameworks with sparse gradients take it: the gradient of every lookup as a tensor [lookups, dim],
// coalesced to one of [rows, dim], then one pass over memory for each operation of the optimizer's formula. Sums as
// EmbeddingBackward, but without its blocks; for comparison, and what a job written for such a framework costs.
void EmbeddingBackwardSeparate(const EmbeddingBags& bags, const RowUpdate& update, void* workspace);
void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient);
double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* workspace);
}  // namespace cpu

// One row to fp32 and back. `random_key`: RowKey of the row.
void LoadRow(const void* row, RowFormat format, int32_t dim, float* values);
void StoreRowStochastic(const float* values, int32_t dim, RowFormat format, uint32_t random_key, void* row);
// Round to nearest: for initialisation, import and tests.
void StoreRow(const float* values, int32_t dim, RowFormat format, void* row);

}  // namespace portolan::kernels
