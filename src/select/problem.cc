#include "select/problem.h"

#include <algorithm>

namespace portolan {
namespace {

constexpr int64_t kWidestAccessBytes = 16;

int RowAlignment(int64_t row_elements, int64_t leading_dimension, DType dtype, int pointer_alignment) {
  const int64_t elements = leading_dimension > 0 ? leading_dimension : row_elements;
  const auto row = static_cast<int64_t>(static_cast<double>(elements) * SizeOf(dtype).value);
  const int64_t both = row | pointer_alignment | kWidestAccessBytes;
  return static_cast<int>(std::min<int64_t>(both & -both, kWidestAccessBytes));
}

}  // namespace

bool IsPriceable(const GemmProblem& p) {
  constexpr double kMostOutputs = 281474976710656.0;  // 2^48
  constexpr int64_t kMostDepth = int64_t{1} << 40;
  if (std::min({p.m, p.n, p.k, p.batch}) < 1 || p.k > kMostDepth) return false;
  if (std::min({p.lda, p.ldb, p.ldc, p.ldd}) < 0 || std::min(p.groups, p.usable_units) < 0) return false;
  if (p.pointer_alignment_bytes < 1 || (p.group_m != nullptr && p.groups < 1)) return false;
  for (int i = 0; p.group_m != nullptr && i < p.groups; ++i) {
    if (p.group_m[i] < 0 || p.group_m[i] > p.m) return false;
  }
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) <= kMostOutputs;
}

double OutputPasses(const GemmProblem& problem) {
  const bool reads_another =
      problem.epilogue == GemmEpilogue::kAdd || problem.epilogue == GemmEpilogue::kActivationGradient;
  return reads_another ? 2.0 : 1.0;
}

GemmShape ShapeOf(const GemmProblem& problem) {
  GemmShape shape;
  shape.m = problem.m;
  shape.n = problem.n;
  shape.k = problem.k;
  shape.batch = problem.batch;
  shape.groups = std::max<int64_t>(1, problem.groups);
  shape.layout = problem.layout;
  shape.a = problem.a;
  shape.b = problem.b;
  shape.d = problem.d;
  shape.compute = problem.compute;
  shape.epilogue = problem.epilogue;
  return shape;
}

GemmProblem ProblemOf(const GemmShape& shape) {
  GemmProblem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.batch = shape.batch;
  problem.groups = static_cast<int32_t>(shape.groups > 1 ? shape.groups : 0);
  problem.layout = shape.layout;
  problem.a = shape.a;
  problem.b = shape.b;
  problem.c = problem.d = shape.d;
  problem.compute = shape.compute;
  problem.epilogue = shape.epilogue;
  return problem;
}

int RowAlignmentA(const GemmProblem& problem) {
  return RowAlignment(problem.layout == GemmLayout::kNT ? problem.m : problem.k, problem.lda, problem.a,
                      problem.pointer_alignment_bytes);
}

int RowAlignmentB(const GemmProblem& problem) {
  return RowAlignment(problem.layout == GemmLayout::kTN ? problem.k : problem.n, problem.ldb, problem.b,
                      problem.pointer_alignment_bytes);
}

int RowAlignmentD(const GemmProblem& problem) {
  return RowAlignment(problem.n, problem.ldd, problem.d, problem.pointer_alignment_bytes);
}

}  // namespace portolan
