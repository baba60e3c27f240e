#pragma once

#include <cstdint>

#include "cost/memory_bound.h"
#include "ops/gemm.h"
#include "units/dtype.h"

namespace portolan {

// One product to find a kernel for: row-major D[M,N] = A[M,K] B[K,N] (+ C), `batch` times, or one product per entry of
// `group_m` that share N and K (m is then their sum). A BLAS (column-major) call of sizes m, n, k with transA, transB
// is the same problem with M = n, N = m and the same two layout letters (see GemmLayout). Plain data: copying it
// allocates nothing, and `group_m` is not owned.
struct GemmProblem {
  int64_t m = 1, n = 1, k = 1;
  int64_t batch = 1;
  const int64_t* group_m = nullptr;  // rows of each group, or null
  int32_t groups = 0;                // entries of group_m
  GemmLayout layout = GemmLayout::kTN;
  // Elements between rows of the stored operands; 0 = packed. They matter by their alignment and by the bytes touched.
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int32_t pointer_alignment_bytes = 16;  // of A, B, C and D
  DType a = DType::kBf16, b = DType::kBf16, c = DType::kBf16, d = DType::kBf16;
  DType compute = DType::kBf16;
  GemmEpilogue epilogue = GemmEpilogue::kNone;
  InputResidency inputs = InputResidency::kCold;
  int32_t usable_units = 0;  // compute units or SMs that the product may use; 0 = all of the device

  bool operator==(const GemmProblem&) const = default;
};

// Sizes, batch and groups from 1, no negative leading dimension, usable units or group, at most 2^48 outputs and 2^40
// deep. Nothing else is ranked or priced.
bool IsPriceable(const GemmProblem& problem);

// How often the output passes through memory: twice where the epilogue reads another [M,N], else once.
double OutputPasses(const GemmProblem& problem);

// The same product for the kernel-blind model of cost/gemm.h.
GemmShape ShapeOf(const GemmProblem& problem);
// The problem with packed rows, aligned pointers and cold inputs.
GemmProblem ProblemOf(const GemmShape& shape);

// Largest power of two, at most 16, that divides every row start of the operand in bytes: what its loads or stores may
// assume.
int RowAlignmentA(const GemmProblem& problem);
int RowAlignmentB(const GemmProblem& problem);
int RowAlignmentD(const GemmProblem& problem);

}  // namespace portolan
