#include <algorithm>
#include <cmath>

#include "kernels/loss/loss.h"

namespace portolan::kernels::reference {

double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits) {
  double sum = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const double z = logits[b * stride];
    const double weight = weights != nullptr ? weights[b] : 1.0;
    sum += weight * (std::max(z, 0.0) - z * labels[b] + std::log1p(std::exp(-std::abs(z))));
    if (dlogits != nullptr) {
      dlogits[b * stride] = static_cast<float>(gradient_scale * weight * (1 / (1 + std::exp(-z)) - labels[b]));
    }
  }
  return sum;
}

}  // namespace portolan::kernels::reference
