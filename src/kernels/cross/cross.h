#pragma once

#include <cstdint>

// The elementwise part of one DCN-V2 cross layer (arXiv 2008.13535), fused with the bias; the products are GEMMs:
//   y = x0 * (u + bias) + x        u = U (V x) or W x, without its bias
// All tensors [batch, width] without gaps.
namespace portolan::kernels {

namespace reference {
void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y);
// du = dy * x0, dbias [width] = column sums of du (overwritten), dx0 += dy * (u + bias). The gradient of x is dy, plus
// the gradient through u, which the caller's GEMM adds.
void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0);
}  // namespace reference
namespace cpu {
void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y);
void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0);
// The operations that a framework makes of it, over `count` numbers: out = a * b, out = a + b, and sum += a.
void Multiply(int64_t count, const float* a, const float* b, float* out);
void Add(int64_t count, const float* a, const float* b, float* out);
void Accumulate(int64_t count, const float* a, float* sum);
}  // namespace cpu

}  // namespace portolan::kernels
