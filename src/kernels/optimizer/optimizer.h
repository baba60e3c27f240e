#pragma once

#include <cstdint>

// Optimizers of dense parameters: one fused pass over flat fp32 arrays of `count` numbers.
namespace portolan::kernels {

enum class DenseUpdateKind : int32_t { kSgd, kMomentum, kAdagrad, kAdam };
// fp32 values of state a parameter: 0, 1 (velocity), 1 (sum of squares), 2 (m of all parameters, then v of all).
inline int64_t DenseStateFloats(DenseUpdateKind kind) {
  return kind == DenseUpdateKind::kSgd ? 0 : kind == DenseUpdateKind::kAdam ? 2 : 1;
}

// G = gradient_scale * gradient.
//   kSgd       w -= lr G
//   kMomentum  v = momentum v + G;   w -= lr v                      (PyTorch's SGD, no dampening)
//   kAdagrad   s += G^2;             w -= lr G / (sqrt(s) + eps)    (Duchi et al., JMLR 12, 2011)
//   kAdam      m = b1 m + (1 - b1) G; v = b2 v + (1 - b2) G^2; w -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
//              (arXiv 1412.6980 algorithm 1), t = step, from 1
struct DenseUpdate {
  DenseUpdateKind kind = DenseUpdateKind::kSgd;
  float learning_rate = 0;
  float momentum = 0.9f;
  float epsilon = 1e-8f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  int64_t step = 1;
  float gradient_scale = 1;
};

namespace reference {
void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state);
double SquaredNorm(int64_t count, const float* values);
}  // namespace reference
namespace cpu {
void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state);
// One operation a pass, as a framework without fusion. `state` and `second` (Adam's v) [count], scratch [2 count].
void DenseOptimizerStepSeparate(const DenseUpdate& update, int64_t count, const float* gradient, float* weights,
                                float* state, float* second, float* scratch);
// Sum of squares, in blocks of 4,096 added in order: bit-equal for any number of threads.
double SquaredNorm(int64_t count, const float* values);
}  // namespace cpu

}  // namespace portolan::kernels
