#include "kernels/interaction/interaction.h"

namespace portolan::kernels::reference {

void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out) {
  for (int64_t b = 0; b < shape.batch; ++b) {
    const float* sample = x + b * shape.x_stride;
    float* row = out + b * shape.out_stride;
    int64_t column = 0;
    for (int64_t d = 0; d < shape.dim; ++d) row[column++] = sample[d];
    for (int64_t i = 0; i < shape.features; ++i) {
      for (int64_t j = i + 1; j < shape.features; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < shape.dim; ++d) {
          dot += static_cast<double>(sample[i * shape.dim + d]) * sample[j * shape.dim + d];
        }
        row[column++] = static_cast<float>(dot);
      }
    }
    while (column < shape.out_width) row[column++] = 0;
  }
}

void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx) {
  for (int64_t b = 0; b < shape.batch; ++b) {
    const float* sample = x + b * shape.x_stride;
    const float* row = dout + b * shape.out_stride;
    float* gradient = dx + b * shape.x_stride;
    for (int64_t n = 0; n < shape.features * shape.dim; ++n) gradient[n] = n < shape.dim ? row[n] : 0;
    int64_t column = shape.dim;
    for (int64_t i = 0; i < shape.features; ++i) {
      for (int64_t j = i + 1; j < shape.features; ++j, ++column) {
        for (int64_t d = 0; d < shape.dim; ++d) {
          gradient[i * shape.dim + d] += row[column] * sample[j * shape.dim + d];
          gradient[j * shape.dim + d] += row[column] * sample[i * shape.dim + d];
        }
      }
    }
  }
}

}  // namespace portolan::kernels::reference
