#pragma once

#include <cstdint>

#include "device/stream.h"
#include "kernels/activation/activation.h"
#include "kernels/embedding/embedding.h"
#include "kernels/interaction/interaction.h"
#include "kernels/optimizer/optimizer.h"

// The gpu bodies of the kernels, in the namespace PORTOLAN_BACKEND (emu32, emu64, cuda or hip): what they compute is
// said in the header of each op. All tensors lie in memory that the backend reaches; `tables`, `features` and the last
// of `offsets` of EmbeddingBags are read on the host as well. Launches queue on the stream; a function that returns a
// number waits for it. Sums are in an order that depends on the shapes only.
namespace portolan::kernels::PORTOLAN_BACKEND {

void BiasActivationForward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, float* x,
                           const float* bias, int64_t y_stride, float* y, device::Stream stream = {});
void BiasActivationBackward(ActivationKind kind, int64_t rows, int64_t width, int64_t x_stride, const float* x,
                            int64_t y_stride, const float* y, int64_t dy_stride, const float* dy, int64_t dx_stride,
                            float* dx, float* dbias, device::Stream stream = {});

double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits, device::Stream stream = {});

void CrossForward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* x,
                  float* y, device::Stream stream = {});
void CrossBackward(int64_t batch, int64_t width, const float* x0, const float* u, const float* bias, const float* dy,
                   float* du, float* dbias, float* dx0, device::Stream stream = {});

void DenseOptimizerStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state,
                        device::Stream stream = {});
double SquaredNorm(int64_t count, const float* values, device::Stream stream = {});

void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out, device::Stream stream = {});
void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx,
                            device::Stream stream = {});

void EmbeddingForward(const EmbeddingBags& bags, device::Stream stream = {});
void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* workspace, device::Stream stream = {});
void EmbeddingWeightGradient(const EmbeddingBags& bags, float* weight_gradient, device::Stream stream = {});
double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* workspace, device::Stream stream = {});

void LayerNormForward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* beta, float* y,
                      float* mean, float* rstd, device::Stream stream = {});
void LayerNormBackward(int64_t rows, int64_t width, const float* x, const float* gamma, const float* mean,
                       const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta,
                       device::Stream stream = {});

}  // namespace portolan::kernels::PORTOLAN_BACKEND
