#include "ops/attention.h"

#include "base/check.h"

namespace portolan {
namespace {

// Elements of one tensor of each kind, all sequences and heads.
struct Elements {
  double q, k, v, o;
  double query_rows;  // queries x heads
};

Elements ElementsOf(const AttentionShape& shape) {
  const double heads = static_cast<double>(shape.heads);
  const double query_rows = shape.sequences * shape.query_length * heads;
  const double key_rows = shape.sequences * shape.key_length * heads;
  const double qk_dim = static_cast<double>(shape.qk_dim);
  const double v_dim = static_cast<double>(shape.v_dim);
  return {query_rows * qk_dim, key_rows * qk_dim, key_rows * v_dim, query_rows * v_dim, query_rows};
}

bool IsSoftmax(const AttentionShape& shape) { return shape.kind == AttentionKind::kSoftmax; }

}  // namespace

double AttentionPairs(const AttentionShape& shape) {
  PORTOLAN_CHECK(shape.sequences >= 0 && shape.query_length >= 0 && shape.key_length >= 0, "negative attention size");
  PORTOLAN_CHECK(shape.mean_square_ratio >= 1.0 - 1e-9, "mean(l^2) is at least mean(l)^2");
  const double q = shape.query_length;
  const double k = shape.key_length;
  const double r = shape.mean_square_ratio;
  if (shape.mask == AttentionMask::kNone) return shape.sequences * r * q * k;
  if (q > k) return shape.sequences * (r * k * k / 2.0 + k / 2.0);
  return shape.sequences * (r * (q * (k - q) + q * q / 2.0) + q / 2.0);
}

Work AttentionForwardWork(const AttentionShape& shape) {
  const double scores = AttentionPairs(shape) * static_cast<double>(shape.heads);
  const Elements elements = ElementsOf(shape);
  Work work;
  work.matrix_dtype = shape.dtype;
  work.matrix_flops = Flops(2.0 * scores * static_cast<double>(shape.qk_dim + shape.v_dim));
  work.vector_flops = Flops(scores * (IsSoftmax(shape) ? 4.0 : 3.0));
  work.transcendentals = scores;
  work.read = SizeOf(shape.dtype) * (elements.q + elements.k + elements.v);
  work.written = SizeOf(shape.dtype) * elements.o;
  if (IsSoftmax(shape)) work.written += SizeOf(DType::kFp32) * elements.query_rows;
  work.parallelism = elements.o;
  return work;
}

Work AttentionBackwardWork(const AttentionShape& shape) {
  const double scores = AttentionPairs(shape) * static_cast<double>(shape.heads);
  const Elements elements = ElementsOf(shape);
  Work work;
  work.matrix_dtype = shape.dtype;
  work.matrix_flops = Flops(2.0 * scores * static_cast<double>(3 * shape.qk_dim + 2 * shape.v_dim));
  work.vector_flops = Flops(scores * (IsSoftmax(shape) ? 5.0 : 9.0));
  work.transcendentals = scores;
  work.read = SizeOf(shape.dtype) * (elements.q + elements.k + elements.v + elements.o);
  work.written = SizeOf(shape.dtype) * (elements.q + elements.k + elements.v);
  if (IsSoftmax(shape)) {
    work.vector_flops += Flops(2.0 * elements.o);
    work.read += SizeOf(shape.dtype) * elements.o + SizeOf(DType::kFp32) * elements.query_rows;
  }
  work.parallelism = elements.q + elements.k + elements.v;
  return work;
}

}  // namespace portolan
