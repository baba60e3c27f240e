#pragma once

#include <cstdint>

// Layer norm over the last axis (arXiv 1607.06450): y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(var + eps),
// var the biased variance. x, y, dx, dy [rows, width] without gaps; gamma, beta [width]; mean, rstd [rows].
namespace portolan::kernels {

constexpr float kLayerNormEpsilon = 1e-5f;  // PyTorch's default

namespace reference {
void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd);
// dx overwritten; dgamma, dbeta [width] overwritten with the sums over the rows. dx may be dy.
void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta);
}  // namespace reference
namespace cpu {
void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd);
void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta);
}  // namespace cpu

}  // namespace portolan::kernels
