#pragma once

#include <cstdint>

// DLRM dot interaction (arXiv 1906.00091 section 2). Per sample: F vectors of D numbers, x [batch, F, D] ->
// out [batch, D + F (F - 1) / 2 + pad]: vector 0, then the products (i, j), i < j, in the order (0,1), (0,2), ...,
// (1,2), ... (the strict upper triangle row by row, as TorchRec), then `pad` zeros.
namespace portolan::kernels {

struct DotInteractionShape {
  int64_t batch = 0;
  int64_t features = 0;    // F, 1 or more
  int64_t dim = 0;         // D
  int64_t x_stride = 0;    // from one sample to the next, at least F * D
  int64_t out_stride = 0;  // at least D + F (F - 1) / 2; columns beyond are written as 0 up to out_width
  int64_t out_width = 0;   // D + F (F - 1) / 2 + pad
};
inline int64_t DotInteractionWidth(int64_t features, int64_t dim) { return dim + features * (features - 1) / 2; }

namespace reference {
void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out);
// dx = gradient of x, overwritten: dx_i = sum over j != i of dout(i, j) x_j, and dx_0 += dout's first D columns.
void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx);
}  // namespace reference
namespace cpu {
void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out);
void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx);
// The operations that a framework makes of it, each a pass over memory. BatchedProduct: out [batch, m, n] = a b, or a^T
// b with a stored [k, m], b [k, n], or a b^T with b stored [n, k]. PickPairs: the strict upper triangle of products
// [batch, F, F], after vector 0 of x, into out as above; SpreadPairs: its gradient, with zeros elsewhere.
enum class BatchedLayout { kPlain, kLeftTransposed, kRightTransposed };
void BatchedProduct(BatchedLayout layout, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t a_stride,
                    const float* a, int64_t b_stride, const float* b, int64_t out_stride, float* out);
void PickPairs(const DotInteractionShape& shape, const float* x, const float* products, float* out);
void SpreadPairs(const DotInteractionShape& shape, const float* dout, float* dproducts);
// dx [batch, F D] += what dout holds of vector 0.
void AddFirstVector(const DotInteractionShape& shape, const float* dout, float* dx);
}  // namespace cpu

}  // namespace portolan::kernels
