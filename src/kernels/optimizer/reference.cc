#include <cmath>

#include "kernels/optimizer/optimizer.h"

namespace portolan::kernels::reference {

void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state) {
  const double lr = update.learning_rate, eps = update.epsilon, beta1 = update.beta1, beta2 = update.beta2;
  const double correct1 = 1 - std::pow(beta1, static_cast<double>(update.step));
  const double correct2 = 1 - std::pow(beta2, static_cast<double>(update.step));
  for (int64_t i = 0; i < count; ++i) {
    const double g = static_cast<double>(update.gradient_scale) * gradient[i];
    double change = g;
    switch (update.kind) {
      case DenseUpdateKind::kSgd:
        break;
      case DenseUpdateKind::kMomentum:
        state[i] = static_cast<float>(update.momentum * static_cast<double>(state[i]) + g);
        change = state[i];
        break;
      case DenseUpdateKind::kAdagrad:
        state[i] = static_cast<float>(state[i] + g * g);
        change = g / (std::sqrt(static_cast<double>(state[i])) + eps);
        break;
      case DenseUpdateKind::kAdam: {
        float& m = state[i];
        float& v = state[count + i];
        m = static_cast<float>(beta1 * m + (1 - beta1) * g);
        v = static_cast<float>(beta2 * v + (1 - beta2) * g * g);
        change = m / correct1 / (std::sqrt(v / correct2) + eps);
        break;
      }
    }
    weights[i] = static_cast<float>(weights[i] - lr * change);
  }
}

double SquaredNorm(int64_t count, const float* values) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

}  // namespace portolan::kernels::reference
