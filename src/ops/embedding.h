#pragma once

#include <cstdint>

#include "ops/work.h"

namespace portolan {

enum class EmbeddingOptimizer { kNone, kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kRowwiseAdam };

// Lookups of one kernel launch on one device: a table-batched set of bags with equal row bytes.
struct EmbeddingShape {
  double lookups = 0;           // rows gathered, duplicates counted
  double bags = 0;              // pooled outputs; equal to lookups when not pooled
  double unique_rows = 0;       // distinct rows among the lookups
  double table_rows = 0;        // rows of all tables served (for the sort's key width and the cache model)
  int64_t dim = 0;              // columns on this device
  DType row = DType::kFp32;     // stored rows
  DType output = DType::kFp32;  // pooled output, and its gradient
  DType index = DType::kInt64;
  DType state = DType::kFp32;  // stored optimizer state
  int64_t tables = 1;
  // Lookups that hit a row already read in this batch by reuse count: share[i] = share of the lookups that go to rows
  // looked up (2^(i-1), 2^i] times (i = 0: once). All zero = unknown: unique_rows alone is used.
  double reuse_share[18] = {};
};

// Forward: read = indices + lookups x row (every lookup, as if no row were read twice: caches are the cost model's
// business; bag offsets not counted), written = bags x dim x output; vector_flops = one addition per lookup and column
// when pooled (lookups > bags), otherwise 0.
Work EmbeddingForwardWork(const EmbeddingShape& shape);
// Bytes that the backward pass moves, reads and writes together, part by part. The kernels are those of a sorted,
// exact-for-duplicates update (FBGEMM's "exact" optimizers, NVIDIA's HugeCTR): with N = lookups, U = unique rows, key =
// bytes of one index, value = 4 (the bag's number; 8 from 2^31 lookups on), passes = ceil(log2(table_rows) / 8):
//   sort      linearise: N (index read, key + value written); one histogram read of the keys; `sort_passes` radix
//             passes of 8 bits that each read and write N (key + value) (LSD radix sort in one sweep a digit,
//             arXiv 2206.01784); run lengths: N keys read, U (key + value) written (unique key and start of its
//             run), and read back by the update, as are the N sorted values.
//   gradient  the gradient of every bag once: bags x dim x output. What HBM must give when caches hold the rest.
//   rows      each unique row read and written once: 2 U dim row. (kNone: U dim row, the summed gradient, written.)
//   state     each unique row's optimizer state read and written once: 2 U EmbeddingStateBytesPerRow.
// `gradient_gather` is not a further part: it is what the update kernel loads through the caches in the place of
// `gradient`, one gradient row a lookup: N x dim x output; equal to `gradient` when nothing is pooled.
struct EmbeddingBackwardTraffic {
  int sort_passes = 0;
  Bytes sort;
  Bytes gradient;
  Bytes gradient_gather;
  Bytes rows;
  Bytes state;
};
EmbeddingBackwardTraffic EmbeddingBackwardBytes(const EmbeddingShape& shape, EmbeddingOptimizer optimizer);
// Passes of a radix sort with 8-bit digits over keys in [0, table_rows): ceil(ceil(log2 rows) / 8), at least 1.
int EmbeddingSortPasses(double table_rows);
// Backward fused with the optimizer: read + written = sort + gradient + rows + state of EmbeddingBackwardBytes.
// vector_flops: one addition per lookup and column, and per unique row and column 0 (none), 2 (sgd), 6 (adagrad), 4
// (row-wise adagrad; 4 more a row), 11 (adam), 7 (row-wise adam; 6 more a row). transcendentals: a square root and a
// reciprocal per column (adagrad, adam) or per row (row-wise). parallelism = unique rows x dim.
Work EmbeddingBackwardWork(const EmbeddingShape& shape, EmbeddingOptimizer optimizer);
// Optimizer state of one row in fp32: 0 (none, sgd), dim (adagrad), 1 (row-wise adagrad), 2 dim (adam), dim + 1
// (row-wise adam) values.
Bytes EmbeddingStateBytesPerRow(EmbeddingOptimizer optimizer, int64_t dim, DType state = DType::kFp32);

// Expected number of distinct rows among `lookups` independent draws from `rows` rows, sum over i of 1 - (1 -
// P(i))^lookups: uniform when zipf_exponent = 0, otherwise P(i) ~ i^-zipf_exponent, i = 1..rows. Never more than
// min(lookups, rows). Uniform: exact. Zipf: the first 64 rows one by one, the rest as an integral over log i; within
// 1e-4 of the exact sum for exponents to 2 and up to 1e6 rows (embedding_test.cc). Known error of the assumption: draws
// of one bag are often distinct, and a real table's head is flatter than a Zipf law's.
double ExpectedUniqueRows(double lookups, double rows, double zipf_exponent);

}  // namespace portolan
