#pragma once

#include <cstdint>

// Bias and activation after a GEMM, and their gradient with the bias gradient in the same pass. x, y [rows, width],
// `stride` numbers from one row to the next.
namespace portolan::kernels {

enum class ActivationKind : int32_t {
  kNone,
  kRelu,
  kSigmoid,
  kSilu,  // x sigmoid(x)
  kGelu,  // x Phi(x), by erf
};

namespace reference {
// x += bias [width] (null: none), in place, kept where the backward pass needs it (kSilu, kGelu); y = activation(x).
// x and y may be one tensor for kNone, kRelu and kSigmoid.
void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y);
// dx = dy * activation'(x); dbias [width] = column sums of dx, overwritten (null: not wanted). x is the biased input
// for kSilu and kGelu and not read otherwise; y is not read for kNone, kSilu and kGelu. dx and dy may be one tensor.
void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias);
}  // namespace reference
namespace cpu {
void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y);
// Sums rows in blocks of 64, then the blocks in order: bit-equal for any number of threads.
void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias);
// One operation a pass, as a framework without fusion: y = bias in every row, y = activation(x), dx = dy *
// activation'(x) (x and y are read as by BiasActivationBackward), and column sums. x and dx of the activations are
// without gaps.
void BroadcastBias(int64_t rows, int64_t width, const float* bias, int64_t y_stride, float* y);
void ActivationForward(ActivationKind kind, int64_t rows, int64_t width, const float* x, int64_t y_stride, float* y);
void ActivationBackward(ActivationKind kind, int64_t rows, int64_t width, const float* x, int64_t y_stride,
                        const float* y, int64_t dy_stride, const float* dy, float* dx);
void ColumnSums(int64_t rows, int64_t width, int64_t stride, const float* x, float* sums);
}  // namespace cpu

}  // namespace portolan::kernels
