#include "kernels/cross/cross.h"

namespace portolan::kernels::reference {

void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y) {
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t n = 0; n < width; ++n) {
      const int64_t i = b * width + n;
      y[i] = x0[i] * (u[i] + bias[n]) + x[i];
    }
  }
}

void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0) {
  for (int64_t n = 0; n < width; ++n) {
    double sum = 0;
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t i = b * width + n;
      du[i] = dy[i] * x0[i];
      dx0[i] += dy[i] * (u[i] + bias[n]);
      sum += du[i];
    }
    dbias[n] = static_cast<float>(sum);
  }
}

}  // namespace portolan::kernels::reference
