#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/layers.h"
#include "kernels/cross/cross.h"
#include "kernels/interaction/interaction.h"

// What PyTorch runs for the same layers, operation by operation: addmm (the bias copied to the output, then the
// product on top of it), an activation out of place, bmm and index for the dot interaction, one pass for every factor
// and sum of a cross layer. For comparison, and because it is what a plain port costs.
namespace portolan {
namespace {

using kernels::ActivationKind;

KernelCall Call(const char* kernel, int64_t rows, int64_t width, int64_t depth = 0) {
  return {kernel, rows, width, depth, {}};
}
KernelCall Call(const kernels::GemmProblem& problem) { return {"gemm", problem.m, problem.n, problem.k, problem}; }

// Scratch: the product with its bias, kept; the gradient of it.
class EagerLinear : public Layer {
 public:
  EagerLinear(const std::string& name, int64_t in, int64_t out, ActivationKind activation)
      : in_(in), out_(out), activation_(activation) {
    parameters = LinearParameters(name, in, out);
    if (activation == ActivationKind::kNone) return;
    scratch = {{out, Scratch::Life::kForwardToBackward}, {out, Scratch::Life::kBackward}};
  }
  void Forward(const LayerIo& io) override {
    // Without an activation the product is the output, whose rows may have gaps.
    const Tensor product = Plain() ? io.y : Tensor{io.scratch[0], out_};
    const float* bias = io.weights + parameters[1].offset;
    kernels::cpu::BroadcastBias(io.rows, out_, bias, product.stride, product.data);
    kernels::cpu::Gemm(ProductProblem(io, io.x[0], in_, out_, 1, product), io.x[0].data,
                       io.weights + parameters[0].offset, product.data);
    if (!Plain()) {
      kernels::cpu::ActivationForward(activation_, io.rows, out_, product.data, io.y.stride, io.y.data);
    }
  }
  void Backward(const LayerIo& io) override {
    Tensor dy = io.dy;
    if (!Plain()) {
      dy = {io.scratch[1], out_};
      kernels::cpu::ActivationBackward(activation_, io.rows, out_, io.scratch[0], io.y.stride, io.y.data, io.dy.stride,
                                       io.dy.data, dy.data);
    }
    std::vector<float> dbias(static_cast<size_t>(out_));
    kernels::cpu::ColumnSums(io.rows, out_, dy.stride, dy.data, dbias.data());
    DeliverGradient(io.mode, dbias, io.gradients + parameters[1].offset);
    kernels::cpu::Gemm(WeightGradientProblem(io, dy, io.x[0], in_, out_), dy.data, io.x[0].data,
                       io.gradients + parameters[0].offset);
    if (io.dx[0].data == nullptr) return;
    kernels::cpu::Gemm(InputGradientProblem(io, dy, in_, out_, 0, io.dx[0]), dy.data, io.weights + parameters[0].offset,
                       io.dx[0].data);
  }
  LayerCalls Calls(const LayerIo& io) const override {
    const Tensor product = Plain() ? io.y : Tensor{nullptr, out_}, dy = Plain() ? io.dy : Tensor{nullptr, out_};
    LayerCalls calls;
    calls.forward = {Call("broadcast", io.rows, out_), Call(ProductProblem(io, io.x[0], in_, out_, 1, product))};
    if (!Plain()) {
      calls.forward.push_back(Call(ForwardName(), io.rows, out_));
      calls.backward.push_back(Call(BackwardName(), io.rows, out_));
    }
    calls.backward.push_back(Call("column_sums", io.rows, out_));
    calls.backward.push_back(Call(WeightGradientProblem(io, dy, io.x[0], in_, out_)));
    if (io.dx[0].data != nullptr) calls.backward.push_back(Call(InputGradientProblem(io, dy, in_, out_, 0, io.dx[0])));
    return calls;
  }

 private:
  bool Plain() const { return activation_ == ActivationKind::kNone; }
  const char* ForwardName() const {
    switch (activation_) {
      case ActivationKind::kSigmoid:
        return "sigmoid_forward";
      case ActivationKind::kSilu:
        return "silu_forward";
      case ActivationKind::kGelu:
        return "gelu_forward";
      default:
        return "relu_forward";
    }
  }
  const char* BackwardName() const {
    switch (activation_) {
      case ActivationKind::kSigmoid:
        return "sigmoid_backward";
      case ActivationKind::kSilu:
        return "silu_backward";
      case ActivationKind::kGelu:
        return "gelu_backward";
      default:
        return "relu_backward";
    }
  }
  int64_t in_, out_;
  ActivationKind activation_;
};

// Scratch: all products of a sample with each other, their gradient, and the second term of the gradient of x.
class EagerDotInteraction : public Layer {
 public:
  EagerDotInteraction(int64_t vectors, int64_t dim, int64_t padding) : vectors_(vectors), dim_(dim), padding_(padding) {
    const auto square = vectors * vectors;
    scratch = {{square, Scratch::Life::kForwardToBackward}, {square}, {vectors * dim}};
  }
  void Forward(const LayerIo& io) override {
    using kernels::cpu::BatchedLayout;
    const float* x = io.x[0].data;
    kernels::cpu::BatchedProduct(BatchedLayout::kRightTransposed, io.rows, vectors_, vectors_, dim_, io.x[0].stride, x,
                                 io.x[0].stride, x, vectors_ * vectors_, io.scratch[0]);
    kernels::cpu::PickPairs(Shape(io, io.y.stride), x, io.scratch[0], io.y.data);
  }
  void Backward(const LayerIo& io) override {
    using kernels::cpu::BatchedLayout;
    if (io.dx[0].data == nullptr) return;
    PORTOLAN_CHECK(io.dx[0].stride == vectors_ * dim_, "the gradient of the joined vectors must be without gaps");
    const int64_t square = vectors_ * vectors_, width = vectors_ * dim_;
    float *products = io.scratch[1], *second = io.scratch[2], *dx = io.dx[0].data;
    const float* x = io.x[0].data;
    kernels::cpu::SpreadPairs(Shape(io, io.dy.stride), io.dy.data, products);
    kernels::cpu::BatchedProduct(BatchedLayout::kPlain, io.rows, vectors_, dim_, vectors_, square, products,
                                 io.x[0].stride, x, width, dx);
    kernels::cpu::BatchedProduct(BatchedLayout::kLeftTransposed, io.rows, vectors_, dim_, vectors_, square, products,
                                 io.x[0].stride, x, width, second);
    kernels::cpu::Accumulate(io.rows * width, second, dx);
    kernels::cpu::AddFirstVector(Shape(io, io.dy.stride), io.dy.data, dx);
  }
  LayerCalls Calls(const LayerIo& io) const override {
    LayerCalls calls;
    calls.forward = {Call("pair_products", io.rows, vectors_, dim_), Call("pick_pairs", io.rows, vectors_, dim_)};
    if (io.dx[0].data == nullptr) return calls;
    calls.backward = {Call("pick_pairs", io.rows, vectors_, dim_), Call("pair_gradients", io.rows, vectors_, dim_),
                      Call("pair_gradients", io.rows, vectors_, dim_), Call("accumulate", io.rows, vectors_ * dim_),
                      Call("copy_rows", io.rows, dim_)};
    return calls;
  }

 private:
  kernels::DotInteractionShape Shape(const LayerIo& io, int64_t out_stride) const {
    return {io.rows,        vectors_,   dim_,
            io.x[0].stride, out_stride, kernels::DotInteractionWidth(vectors_, dim_) + padding_};
  }
  int64_t vectors_, dim_, padding_;
};

// Scratch: x_1 ... x_{L-1}, then u of every layer with its bias, then h of every layer (rank > 0), then x0 * u and the
// gradients of u, x_l, h and of x_l through the products.
class EagerCross : public Layer {
 public:
  EagerCross(const std::string& name, int64_t width, int64_t layers, int64_t rank)
      : width_(width), layers_(layers), rank_(rank) {
    parameters = CrossParameters(name, width, layers, rank);
    const auto kept = Scratch::Life::kForwardToBackward;
    for (int64_t l = 1; l < layers; ++l) scratch.push_back({width, kept});
    for (int64_t l = 0; l < layers; ++l) scratch.push_back({width, kept});
    for (int64_t l = 0; l < (rank > 0 ? layers : 0); ++l) scratch.push_back({rank, kept});
    scratch.push_back({width, kept});  // a factor or a product
    for (int i = 0; i < 3; ++i) scratch.push_back({width});
    if (rank > 0) scratch.push_back({rank});
  }
  void Forward(const LayerIo& io) override {
    float* product = io.scratch[Temporaries()];
    for (int64_t l = 0; l < layers_; ++l) {
      const Tensor x = Input(io, l), u{U(io, l), width_};
      Tensor last = x;
      int64_t in = width_;
      if (rank_ > 0) {
        last = {H(io, l), rank_};
        kernels::cpu::Gemm(ProductProblem(io, x, width_, rank_, 0, last), x.data, Weight(io, l, 0), last.data);
        in = rank_;
      }
      kernels::cpu::BroadcastBias(io.rows, width_, Weight(io, l, Kinds() - 1), width_, u.data);
      kernels::cpu::Gemm(ProductProblem(io, last, in, width_, 1, u), last.data, Weight(io, l, Kinds() - 2), u.data);
      float* y = l + 1 < layers_ ? io.scratch[static_cast<size_t>(l)] : io.y.data;
      kernels::cpu::Multiply(io.rows * width_, io.x[0].data, u.data, product);
      kernels::cpu::Add(io.rows * width_, product, x.data, y);
    }
  }
  void Backward(const LayerIo& io) override {
    const int64_t count = io.rows * width_;
    float* product = io.scratch[Temporaries()];
    const Tensor du{io.scratch[Temporaries() + 1], width_}, d{io.scratch[Temporaries() + 2], width_};
    const Tensor through{io.scratch[Temporaries() + 3], width_};
    std::vector<float> own;  // where nobody wants the gradient of x0
    float* dx0 = io.dx[0].data;
    if (dx0 == nullptr) {
      own.resize(static_cast<size_t>(count));
      dx0 = own.data();
    }
    const float* dy = io.dy.data;  // of x_{l+1}
    std::vector<float> dbias(static_cast<size_t>(width_));
    for (int64_t l = layers_ - 1; l >= 0; --l) {
      const bool first = l + 1 == layers_;
      kernels::cpu::Multiply(count, dy, io.x[0].data, du.data);
      kernels::cpu::Multiply(count, dy, U(io, l), first ? dx0 : product);
      if (!first) kernels::cpu::Accumulate(count, product, dx0);
      kernels::cpu::ColumnSums(io.rows, width_, width_, du.data, dbias.data());
      DeliverGradient(io.mode, dbias, io.gradients + parameters[Index(l, Kinds() - 1)].offset);
      const Tensor x = Input(io, l);
      Tensor inner = du;
      int64_t out = width_;
      if (rank_ > 0) {
        const Tensor h{H(io, l), rank_};
        inner = {io.scratch[Temporaries() + 4], rank_};
        out = rank_;
        kernels::cpu::Gemm(InputGradientProblem(io, du, rank_, width_, 0, inner), du.data, Weight(io, l, 1),
                           inner.data);
        kernels::cpu::Gemm(WeightGradientProblem(io, du, h, rank_, width_), du.data, h.data,
                           io.gradients + parameters[Index(l, 1)].offset);
      }
      kernels::cpu::Gemm(WeightGradientProblem(io, inner, x, width_, out), inner.data, x.data,
                         io.gradients + parameters[Index(l, 0)].offset);
      kernels::cpu::Gemm(InputGradientProblem(io, inner, width_, out, 0, through), inner.data, Weight(io, l, 0),
                         through.data);
      kernels::cpu::Add(count, dy, through.data, d.data);
      dy = d.data;
    }
    kernels::cpu::Accumulate(count, d.data, dx0);
  }
  LayerCalls Calls(const LayerIo& io) const override {
    const Tensor wide{nullptr, width_}, narrow{nullptr, rank_};
    LayerCalls calls;
    for (int64_t l = 0; l < layers_; ++l) {
      if (rank_ > 0) {
        calls.forward.push_back(Call(ProductProblem(io, wide, width_, rank_, 0, narrow)));
        calls.forward.push_back(Call(ProductProblem(io, narrow, rank_, width_, 1, wide)));
        calls.backward.push_back(Call(InputGradientProblem(io, wide, rank_, width_, 0, narrow)));
        calls.backward.push_back(Call(WeightGradientProblem(io, wide, narrow, rank_, width_)));
        calls.backward.push_back(Call(WeightGradientProblem(io, narrow, wide, width_, rank_)));
        calls.backward.push_back(Call(InputGradientProblem(io, narrow, width_, rank_, 0, wide)));
      } else {
        calls.forward.push_back(Call(ProductProblem(io, wide, width_, width_, 1, wide)));
        calls.backward.push_back(Call(WeightGradientProblem(io, wide, wide, width_, width_)));
        calls.backward.push_back(Call(InputGradientProblem(io, wide, width_, width_, 0, wide)));
      }
      for (const char* kernel : {"broadcast", "multiply", "multiply"}) {
        calls.forward.push_back(Call(kernel, io.rows, width_));
      }
      for (const char* kernel : {"multiply", "multiply", "column_sums", "multiply"}) {
        calls.backward.push_back(Call(kernel, io.rows, width_));
      }
      // Of x0: added for every layer but the last one, which writes it, and once more at the end.
      calls.backward.push_back(Call("accumulate", io.rows, width_));
    }
    return calls;
  }

 private:
  size_t Temporaries() const { return static_cast<size_t>(2 * layers_ - 1 + (rank_ > 0 ? layers_ : 0)); }
  size_t Kinds() const { return rank_ > 0 ? 3 : 2; }
  size_t Index(int64_t layer, size_t kind) const { return static_cast<size_t>(layer) * Kinds() + kind; }
  const float* Weight(const LayerIo& io, int64_t layer, size_t kind) const {
    return io.weights + parameters[Index(layer, kind)].offset;
  }
  Tensor Input(const LayerIo& io, int64_t layer) const {
    return {layer == 0 ? io.x[0].data : io.scratch[static_cast<size_t>(layer - 1)], width_};
  }
  float* U(const LayerIo& io, int64_t layer) const { return io.scratch[static_cast<size_t>(layers_ - 1 + layer)]; }
  float* H(const LayerIo& io, int64_t layer) const { return io.scratch[static_cast<size_t>(2 * layers_ - 1 + layer)]; }
  int64_t width_, layers_, rank_;
};

}  // namespace

std::unique_ptr<Layer> MakeEagerLinear(const std::string& name, int64_t in, int64_t out, ActivationKind activation) {
  return std::make_unique<EagerLinear>(name, in, out, activation);
}
std::unique_ptr<Layer> MakeEagerDotInteraction(int64_t vectors, int64_t dim, int64_t padding) {
  return std::make_unique<EagerDotInteraction>(vectors, dim, padding);
}
std::unique_ptr<Layer> MakeEagerCross(const std::string& name, int64_t width, int64_t layers, int64_t rank) {
  return std::make_unique<EagerCross>(name, width, layers, rank);
}

}  // namespace portolan
