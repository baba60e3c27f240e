#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/elementwise.h"
#include "ops/gemm.h"

namespace portolan {

// One low-rank cross layer of DCN-V2 (arXiv 2008.13535, the low-rank form with one expert):
//   x_{l+1} = x_0 * (U (V x_l) + b) + x_l      x: [batch, width], V: [rank, width], U: [width, rank], b: [width]
// MACs a sample forward: 2 width rank. Names below: h = V x_l [batch, rank], u = U h + b [batch, width], d_y = gradient
// of x_{l+1}, d_x0 = gradient of x_0, summed over the layers. All layers are priced alike: the first layer (x_l = x_0)
// and the last (d_x0 starts empty) need a tensor or two less.
struct LowRankCrossShape {
  int64_t batch = 0;
  int64_t width = 0;
  int64_t rank = 0;
  DType dtype = DType::kBf16;    // of every tensor
  DType compute = DType::kBf16;  // the matrix unit's input format, as in GemmShape
};

enum class CrossFusion {
  kFused,    // one kernel after the products, one before them in backward (HugeCTR's MultiCross layer works so)
  kUnfused,  // one kernel an operation, as an eager framework runs it
};

// h = V x_l, then u = U h + b with the bias in the epilogue. Both TN.
std::array<GemmShape, 2> CrossForwardGemms(const LowRankCrossShape& shape);
// d_h = d_u U (NN), d_U = d_u^T h (NT), d_x = d_h V (NN), d_V = d_h^T x_l (NT): twice the forward flops. Fused: d_x
// adds d_y in the epilogue (kAdd).
std::array<GemmShape, 4> CrossBackwardGemms(const LowRankCrossShape& shape, CrossFusion fusion);

// The kernels around the products, one entry a launch; passes are whole [batch, width] tensors.
//   fused    read x_0, u, x_l; write x_{l+1}                                          3 read, 1 written
//   unfused  p = x_0 * u: 2 + 1; x_{l+1} = p + x_l: 2 + 1                             4 read, 2 written
std::vector<ElementwiseShape> CrossForwardElementwise(const LowRankCrossShape& shape, CrossFusion fusion);
//   fused    read d_y, x_0, u, d_x0; write d_u = d_y * x_0, d_x0 += d_y * u; the bias
//            gradient is summed on the way                                            4 read, 2 written
//   unfused  d_u = d_y * x_0: 2 + 1; q = d_y * u: 2 + 1; d_x0 += q: 2 + 1; d_b = column
//            sums of d_u: 1 + 0; d_x += d_y: 2 + 1                                    9 read, 4 written
// d_b itself [width] is written in both.
std::vector<ElementwiseShape> CrossBackwardElementwise(const LowRankCrossShape& shape, CrossFusion fusion);

}  // namespace portolan
