#pragma once

#include <cstdint>

// Binary cross-entropy with logits. Per sample: max(z, 0) - z y + log(1 + exp(-|z|)), y in [0, 1].
namespace portolan::kernels {

namespace reference {
// Returns the sum over the samples of weight * loss; dlogits[i] = gradient_scale * weight * (sigmoid(z) - y).
// logits, labels, weights (null: 1), dlogits (null: not wanted): [batch]; the logits and their gradient lie `stride`
// apart.
double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits);
}  // namespace reference
namespace cpu {
// Sums in blocks of 1,024 samples, in order: bit-equal for any number of threads.
double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits);
}  // namespace cpu

}  // namespace portolan::kernels
