#include "ops/cross.h"

#include "base/check.h"

namespace portolan {
namespace {

GemmShape Product(const LowRankCrossShape& shape, int64_t m, int64_t n, int64_t k, GemmLayout layout,
                  GemmEpilogue epilogue) {
  PORTOLAN_CHECK(m >= 0 && n >= 0 && k >= 0, "negative cross layer size");
  GemmShape gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.layout = layout;
  gemm.a = gemm.b = gemm.d = shape.dtype;
  gemm.compute = shape.compute;
  gemm.epilogue = epilogue;
  return gemm;
}

double Elements(const LowRankCrossShape& shape) {
  return static_cast<double>(shape.batch) * static_cast<double>(shape.width);
}

// One kernel that reads and writes whole [batch, width] tensors.
ElementwiseShape Kernel(const LowRankCrossShape& shape, double tensors_read, double tensors_written, double flops) {
  ElementwiseShape kernel;
  kernel.read = SizeOf(shape.dtype) * (tensors_read * Elements(shape));
  kernel.written = SizeOf(shape.dtype) * (tensors_written * Elements(shape));
  kernel.elements = Elements(shape);
  kernel.flops_per_element = flops;
  return kernel;
}

Bytes BiasBytes(const LowRankCrossShape& shape) { return SizeOf(shape.dtype) * static_cast<double>(shape.width); }

}  // namespace

std::array<GemmShape, 2> CrossForwardGemms(const LowRankCrossShape& shape) {
  return {Product(shape, shape.batch, shape.rank, shape.width, GemmLayout::kTN, GemmEpilogue::kNone),
          Product(shape, shape.batch, shape.width, shape.rank, GemmLayout::kTN, GemmEpilogue::kBias)};
}

std::array<GemmShape, 4> CrossBackwardGemms(const LowRankCrossShape& shape, CrossFusion fusion) {
  const GemmEpilogue residual = fusion == CrossFusion::kFused ? GemmEpilogue::kAdd : GemmEpilogue::kNone;
  return {Product(shape, shape.batch, shape.rank, shape.width, GemmLayout::kNN, GemmEpilogue::kNone),
          Product(shape, shape.width, shape.rank, shape.batch, GemmLayout::kNT, GemmEpilogue::kNone),
          Product(shape, shape.batch, shape.width, shape.rank, GemmLayout::kNN, residual),
          Product(shape, shape.rank, shape.width, shape.batch, GemmLayout::kNT, GemmEpilogue::kNone)};
}

std::vector<ElementwiseShape> CrossForwardElementwise(const LowRankCrossShape& shape, CrossFusion fusion) {
  if (fusion == CrossFusion::kFused) return {Kernel(shape, 3, 1, 2)};
  return {Kernel(shape, 2, 1, 1), Kernel(shape, 2, 1, 1)};
}

std::vector<ElementwiseShape> CrossBackwardElementwise(const LowRankCrossShape& shape, CrossFusion fusion) {
  if (fusion == CrossFusion::kFused) {
    ElementwiseShape kernel = Kernel(shape, 4, 2, 4);  // one product for d_u, two flops for d_x0, one for d_b
    kernel.written += BiasBytes(shape);
    return {kernel};
  }
  ElementwiseShape bias_gradient = Kernel(shape, 1, 0, 0);
  bias_gradient.written = BiasBytes(shape);
  bias_gradient.elements = static_cast<double>(shape.width);
  bias_gradient.flops_per_element = static_cast<double>(shape.batch);
  bias_gradient.reduction_length = static_cast<double>(shape.batch);
  return {Kernel(shape, 2, 1, 1), Kernel(shape, 2, 1, 1), Kernel(shape, 2, 1, 1), bias_gradient,
          Kernel(shape, 2, 1, 1)};
}

}  // namespace portolan
