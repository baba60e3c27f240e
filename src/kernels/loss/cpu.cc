#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/loss/loss.h"

namespace portolan::kernels::cpu {

double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits) {
  constexpr int64_t kBlock = 1024;
  const int64_t blocks = (batch + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    double sum = 0;
    for (int64_t b = block * kBlock; b < std::min((block + 1) * kBlock, batch); ++b) {
      const float z = logits[b * stride];
      const float weight = weights != nullptr ? weights[b] : 1.0f;
      const float decay = std::exp(-std::abs(z));  // e^-|z|, never overflows
      sum += weight * (std::max(z, 0.0f) - z * labels[b] + std::log1p(decay));
      if (dlogits != nullptr) {
        const float probability = (z >= 0 ? 1.0f : decay) / (1.0f + decay);
        dlogits[b * stride] = gradient_scale * weight * (probability - labels[b]);
      }
    }
    sums[block] = sum;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace portolan::kernels::cpu
