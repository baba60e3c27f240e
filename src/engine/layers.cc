#include "engine/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "kernels/cross/cross.h"
#include "kernels/interaction/interaction.h"
#include "kernels/layer_norm/layer_norm.h"

namespace portolan {
namespace {

using kernels::ActivationKind;
using kernels::GemmProblem;
using kernels::Transpose;

double Glorot(int64_t in, int64_t out) { return std::sqrt(2.0 / static_cast<double>(in + out)); }

void CopyRows(int64_t rows, int64_t width, const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_stride, width, to + r * to_stride);
}

void Product(const LayerIo& io, Tensor x, int64_t in, int64_t out, const float* w, Tensor y) {
  kernels::cpu::Gemm(ProductProblem(io, x, in, out, 0, y), x.data, w, y.data);
}
void InputGradient(const LayerIo& io, Tensor dy, int64_t in, int64_t out, const float* w, float beta, Tensor dx) {
  kernels::cpu::Gemm(InputGradientProblem(io, dy, in, out, beta, dx), dy.data, w, dx.data);
}
void WeightGradient(const LayerIo& io, Tensor dy, Tensor x, int64_t in, int64_t out, float* dw) {
  kernels::cpu::Gemm(WeightGradientProblem(io, dy, x, in, out), dy.data, x.data, dw);
}

KernelCall Call(const char* kernel, int64_t rows, int64_t width, int64_t depth = 0) {
  return {kernel, rows, width, depth, {}};
}
KernelCall Call(const kernels::GemmProblem& problem) { return {"gemm", problem.m, problem.n, problem.k, problem}; }

const char* ForwardName(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
      return "bias_forward";
    case ActivationKind::kRelu:
      return "bias_relu_forward";
    case ActivationKind::kSigmoid:
      return "bias_sigmoid_forward";
    case ActivationKind::kSilu:
      return "bias_silu_forward";
    case ActivationKind::kGelu:
      return "bias_gelu_forward";
  }
  return "";
}
const char* BackwardName(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
      return "bias_backward";
    case ActivationKind::kRelu:
      return "bias_relu_backward";
    case ActivationKind::kSigmoid:
      return "bias_sigmoid_backward";
    case ActivationKind::kSilu:
      return "bias_silu_backward";
    case ActivationKind::kGelu:
      return "bias_gelu_backward";
  }
  return "";
}

class Linear : public Layer {
 public:
  Linear(const std::string& name, int64_t in, int64_t out, ActivationKind activation)
      : in_(in), out_(out), activation_(activation) {
    parameters = LinearParameters(name, in, out);
    spec = LinearSpec{in, out, activation};
    if (KeepsInput()) scratch.push_back({out, Scratch::Life::kForwardToBackward});
  }
  void Forward(const LayerIo& io) override {
    const Tensor product = KeepsInput() ? Tensor{io.scratch[0], out_} : io.y;
    Product(io, io.x[0], in_, out_, io.weights + parameters[0].offset, product);
    kernels::cpu::BiasActivationForward(activation_, io.rows, out_, product.stride, product.data,
                                        io.weights + parameters[1].offset, io.y.stride, io.y.data);
  }
  void Backward(const LayerIo& io) override {
    std::vector<float> dbias(static_cast<size_t>(out_));
    kernels::cpu::BiasActivationBackward(activation_, io.rows, out_, out_, KeepsInput() ? io.scratch[0] : nullptr,
                                         io.y.stride, io.y.data, io.dy.stride, io.dy.data, io.dy.stride, io.dy.data,
                                         dbias.data());
    DeliverGradient(io.mode, dbias, io.gradients + parameters[1].offset);
    WeightGradient(io, io.dy, io.x[0], in_, out_, io.gradients + parameters[0].offset);
    if (io.dx[0].data != nullptr) {
      InputGradient(io, io.dy, in_, out_, io.weights + parameters[0].offset, 0, io.dx[0]);
    }
  }
  LayerCalls Calls(const LayerIo& io) const override {
    const Tensor product = KeepsInput() ? Tensor{nullptr, out_} : io.y;
    LayerCalls calls;
    calls.forward = {Call(ProductProblem(io, io.x[0], in_, out_, 0, product)),
                     Call(ForwardName(activation_), io.rows, out_)};
    calls.backward = {Call(BackwardName(activation_), io.rows, out_),
                      Call(WeightGradientProblem(io, io.dy, io.x[0], in_, out_))};
    if (io.dx[0].data != nullptr)
      calls.backward.push_back(Call(InputGradientProblem(io, io.dy, in_, out_, 0, io.dx[0])));
    return calls;
  }

 private:
  bool KeepsInput() const { return activation_ == ActivationKind::kSilu || activation_ == ActivationKind::kGelu; }
  int64_t in_, out_;
  ActivationKind activation_;
};

class Join : public Layer {
 public:
  Join(std::vector<JoinedInput> inputs, int64_t padding) : inputs_(std::move(inputs)), padding_(padding) {
    spec = JoinSpec{inputs_, padding_};
  }
  void Forward(const LayerIo& io) override {
    int64_t column = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].place == JoinedInput::Place::kCopied) {
        CopyRows(io.rows, inputs_[i].width, io.x[i].data, io.x[i].stride, io.y.data + column, io.y.stride);
      }
      column += inputs_[i].width;
    }
    if (padding_ == 0) return;
    for (int64_t r = 0; r < io.rows; ++r) std::fill_n(io.y.data + r * io.y.stride + column, padding_, 0.0f);
  }
  void Backward(const LayerIo& io) override {
    int64_t column = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].place == JoinedInput::Place::kCopied && io.dx[i].data != nullptr) {
        CopyRows(io.rows, inputs_[i].width, io.dy.data + column, io.dy.stride, io.dx[i].data, io.dx[i].stride);
      }
      column += inputs_[i].width;
    }
  }
  LayerCalls Calls(const LayerIo& io) const override {
    LayerCalls calls;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].place != JoinedInput::Place::kCopied) continue;
      calls.forward.push_back(Call("copy_rows", io.rows, inputs_[i].width));
      if (io.dx[i].data != nullptr) calls.backward.push_back(Call("copy_rows", io.rows, inputs_[i].width));
    }
    return calls;
  }

 private:
  std::vector<JoinedInput> inputs_;
  int64_t padding_;
};

class DotInteraction : public Layer {
 public:
  DotInteraction(int64_t vectors, int64_t dim, int64_t padding) : vectors_(vectors), dim_(dim), padding_(padding) {
    spec = DotInteractionSpec{vectors, dim, padding};
  }
  void Forward(const LayerIo& io) override {
    kernels::cpu::DotInteractionForward(Shape(io, io.y.stride), io.x[0].data, io.y.data);
  }
  void Backward(const LayerIo& io) override {
    if (io.dx[0].data == nullptr) return;
    PORTOLAN_CHECK(io.dx[0].stride == io.x[0].stride, "vectors and their gradient must lie alike");
    kernels::cpu::DotInteractionBackward(Shape(io, io.dy.stride), io.x[0].data, io.dy.data, io.dx[0].data);
  }
  LayerCalls Calls(const LayerIo& io) const override {
    LayerCalls calls;
    calls.forward = {Call("dot_forward", io.rows, vectors_, dim_)};
    if (io.dx[0].data != nullptr) calls.backward = {Call("dot_backward", io.rows, vectors_, dim_)};
    return calls;
  }

 private:
  kernels::DotInteractionShape Shape(const LayerIo& io, int64_t out_stride) const {
    return {io.rows,        vectors_,   dim_,
            io.x[0].stride, out_stride, kernels::DotInteractionWidth(vectors_, dim_) + padding_};
  }
  int64_t vectors_, dim_, padding_;
};

// Scratch: x_1 ... x_{L-1}, then u of every layer, then h of every layer (rank > 0), then du, d (gradient of x_l) and
// dh.
class Cross : public Layer {
 public:
  Cross(const std::string& name, int64_t width, int64_t layers, int64_t rank)
      : width_(width), layers_(layers), rank_(rank) {
    parameters = CrossParameters(name, width, layers, rank);
    spec = CrossSpec{width, layers, rank};
    const auto kept = Scratch::Life::kForwardToBackward;
    for (int64_t l = 1; l < layers; ++l) scratch.push_back({width, kept});
    for (int64_t l = 0; l < layers; ++l) scratch.push_back({width, kept});
    for (int64_t l = 0; l < (rank > 0 ? layers : 0); ++l) scratch.push_back({rank, kept});
    scratch.push_back({width});
    scratch.push_back({width});
    if (rank > 0) scratch.push_back({rank});
  }
  void Forward(const LayerIo& io) override {
    for (int64_t l = 0; l < layers_; ++l) {
      const Tensor x = Input(io, l), u{U(io, l), width_};
      if (rank_ > 0) {
        const Tensor h{H(io, l), rank_};
        Product(io, x, width_, rank_, Weight(io, l, 0), h);
        Product(io, h, rank_, width_, Weight(io, l, 1), u);
      } else {
        Product(io, x, width_, width_, Weight(io, l, 0), u);
      }
      float* y = l + 1 < layers_ ? io.scratch[l] : io.y.data;
      kernels::cpu::CrossForward(io.rows, width_, io.x[0].data, u.data, Weight(io, l, Kinds() - 1), x.data, y);
    }
  }
  // d holds the gradient of x_{l+1}; the gradient of x_l is d plus what comes back through u. x0's own share is summed
  // in dx0 and meets d at the end.
  void Backward(const LayerIo& io) override {
    const size_t first = static_cast<size_t>(2 * layers_ - 1 + (rank_ > 0 ? layers_ : 0));
    const Tensor du{io.scratch[first], width_}, d{io.scratch[first + 1], width_};
    std::vector<float> own;  // where nobody wants the gradient of x0
    float* dx0 = io.dx[0].data;
    if (dx0 == nullptr) {
      own.resize(static_cast<size_t>(io.rows * width_));
      dx0 = own.data();
    }
    std::fill_n(dx0, io.rows * width_, 0.0f);
    CopyRows(io.rows, width_, io.dy.data, io.dy.stride, d.data, width_);
    std::vector<float> dbias(static_cast<size_t>(width_));
    for (int64_t l = layers_ - 1; l >= 0; --l) {
      kernels::cpu::CrossBackward(io.rows, width_, io.x[0].data, U(io, l), Weight(io, l, Kinds() - 1), d.data, du.data,
                                  dbias.data(), dx0);
      DeliverGradient(io.mode, dbias, io.gradients + parameters[Index(l, Kinds() - 1)].offset);
      const Tensor x = Input(io, l);
      if (rank_ > 0) {
        const Tensor h{H(io, l), rank_}, dh{io.scratch[first + 2], rank_};
        InputGradient(io, du, rank_, width_, Weight(io, l, 1), 0, dh);
        WeightGradient(io, du, h, rank_, width_, io.gradients + parameters[Index(l, 1)].offset);
        WeightGradient(io, dh, x, width_, rank_, io.gradients + parameters[Index(l, 0)].offset);
        InputGradient(io, dh, width_, rank_, Weight(io, l, 0), 1, d);
      } else {
        WeightGradient(io, du, x, width_, width_, io.gradients + parameters[Index(l, 0)].offset);
        InputGradient(io, du, width_, width_, Weight(io, l, 0), 1, d);
      }
    }
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < io.rows; ++r) {
      for (int64_t n = r * width_; n < (r + 1) * width_; ++n) dx0[n] += d.data[n];
    }
  }
  LayerCalls Calls(const LayerIo& io) const override {
    const Tensor wide{nullptr, width_}, narrow{nullptr, rank_};
    LayerCalls calls;
    calls.backward = {Call("copy_rows", io.rows, width_)};
    for (int64_t l = 0; l < layers_; ++l) {
      calls.backward.push_back(Call("cross_backward", io.rows, width_));
      if (rank_ > 0) {
        calls.forward.push_back(Call(ProductProblem(io, wide, width_, rank_, 0, narrow)));
        calls.forward.push_back(Call(ProductProblem(io, narrow, rank_, width_, 0, wide)));
        calls.backward.push_back(Call(InputGradientProblem(io, wide, rank_, width_, 0, narrow)));
        calls.backward.push_back(Call(WeightGradientProblem(io, wide, narrow, rank_, width_)));
        calls.backward.push_back(Call(WeightGradientProblem(io, narrow, wide, width_, rank_)));
        calls.backward.push_back(Call(InputGradientProblem(io, narrow, width_, rank_, 1, wide)));
      } else {
        calls.forward.push_back(Call(ProductProblem(io, wide, width_, width_, 0, wide)));
        calls.backward.push_back(Call(WeightGradientProblem(io, wide, wide, width_, width_)));
        calls.backward.push_back(Call(InputGradientProblem(io, wide, width_, width_, 1, wide)));
      }
      calls.forward.push_back(Call("cross_forward", io.rows, width_));
    }
    calls.backward.push_back(Call("accumulate", io.rows, width_));
    return calls;
  }

 private:
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

class Norm : public Layer {
 public:
  Norm(const std::string& name, int64_t tokens, int64_t width) : tokens_(tokens), width_(width) {
    spec = NormSpec{tokens, width};
    parameters.push_back({name + ".gamma", {width}, InitialValues::kOne});
    parameters.push_back({name + ".beta", {width}, InitialValues::kZero});
    scratch = {{tokens, Scratch::Life::kForwardToBackward}, {tokens, Scratch::Life::kForwardToBackward}};
  }
  void Forward(const LayerIo& io) override {
    kernels::cpu::LayerNormForward(io.rows * tokens_, width_, io.x[0].data, io.weights + parameters[0].offset,
                                   io.weights + parameters[1].offset, io.y.data, io.scratch[0], io.scratch[1]);
  }
  void Backward(const LayerIo& io) override {
    std::vector<float> dgamma(static_cast<size_t>(width_)), dbeta(dgamma);
    float* dx = io.dx[0].data != nullptr ? io.dx[0].data : io.dy.data;
    kernels::cpu::LayerNormBackward(io.rows * tokens_, width_, io.x[0].data, io.weights + parameters[0].offset,
                                    io.scratch[0], io.scratch[1], io.dy.data, dx, dgamma.data(), dbeta.data());
    DeliverGradient(io.mode, dgamma, io.gradients + parameters[0].offset);
    DeliverGradient(io.mode, dbeta, io.gradients + parameters[1].offset);
  }
  LayerCalls Calls(const LayerIo& io) const override {
    return {{Call("norm_forward", io.rows * tokens_, width_)}, {Call("norm_backward", io.rows * tokens_, width_)}};
  }

 private:
  int64_t tokens_, width_;
};

class Sum : public Layer {
 public:
  Sum(int64_t inputs, int64_t width) : inputs_(inputs), width_(width) { spec = AddSpec{inputs, width}; }
  void Forward(const LayerIo& io) override {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < io.rows; ++r) {
      for (int64_t n = 0; n < width_; ++n) {
        float sum = 0;
        for (int64_t i = 0; i < inputs_; ++i) sum += io.x[i].data[r * io.x[i].stride + n];
        io.y.data[r * io.y.stride + n] = sum;
      }
    }
  }
  void Backward(const LayerIo& io) override {
    for (int64_t i = 0; i < inputs_; ++i) {
      if (io.dx[i].data == nullptr) continue;
      CopyRows(io.rows, width_, io.dy.data, io.dy.stride, io.dx[i].data, io.dx[i].stride);
    }
  }
  LayerCalls Calls(const LayerIo& io) const override {
    LayerCalls calls;
    for (int64_t i = 0; i < inputs_; ++i) {
      calls.forward.push_back(Call("copy_rows", io.rows, width_));
      if (io.dx[static_cast<size_t>(i)].data != nullptr) calls.backward.push_back(Call("copy_rows", io.rows, width_));
    }
    return calls;
  }

 private:
  int64_t inputs_, width_;
};

float Beta(LayerIo::Gradients mode) { return mode == LayerIo::Gradients::kAdd ? 1.0f : 0.0f; }

}  // namespace

GemmProblem ProductProblem(const LayerIo& io, Tensor x, int64_t in, int64_t out, float beta, Tensor y) {
  return {io.rows, out, in, Transpose::kNo, Transpose::kYes, x.stride, in, y.stride, beta, io.format};
}
GemmProblem InputGradientProblem(const LayerIo& io, Tensor dy, int64_t in, int64_t out, float beta, Tensor dx) {
  return {io.rows, in, out, Transpose::kNo, Transpose::kNo, dy.stride, in, dx.stride, beta, io.format};
}
GemmProblem WeightGradientProblem(const LayerIo& io, Tensor dy, Tensor x, int64_t in, int64_t out) {
  return {out, in, io.rows, Transpose::kYes, Transpose::kNo, dy.stride, x.stride, in, Beta(io.mode), io.format};
}

void DeliverGradient(LayerIo::Gradients mode, const std::vector<float>& values, float* d) {
  for (size_t i = 0; i < values.size(); ++i) d[i] = mode == LayerIo::Gradients::kAdd ? d[i] + values[i] : values[i];
}

std::vector<Parameter> LinearParameters(const std::string& name, int64_t in, int64_t out) {
  return {{name + ".weight", {out, in}, InitialValues::kNormal, Glorot(in, out)},
          {name + ".bias", {out}, InitialValues::kNormal, std::sqrt(1.0 / static_cast<double>(out))}};
}

std::vector<Parameter> CrossParameters(const std::string& name, int64_t width, int64_t layers, int64_t rank) {
  std::vector<Parameter> parameters;
  for (int64_t l = 0; l < layers; ++l) {
    const std::string layer = name + "." + std::to_string(l);
    if (rank > 0) {
      parameters.push_back({layer + ".v", {rank, width}, InitialValues::kNormal, Glorot(width, rank)});
      parameters.push_back({layer + ".u", {width, rank}, InitialValues::kNormal, Glorot(rank, width)});
    } else {
      parameters.push_back({layer + ".w", {width, width}, InitialValues::kNormal, Glorot(width, width)});
    }
    parameters.push_back({layer + ".bias", {width}, InitialValues::kZero});
  }
  return parameters;
}

std::unique_ptr<Layer> MakeLinear(const std::string& name, int64_t in, int64_t out, ActivationKind activation) {
  return std::make_unique<Linear>(name, in, out, activation);
}
std::unique_ptr<Layer> MakeJoin(std::vector<JoinedInput> inputs, int64_t padding) {
  return std::make_unique<Join>(std::move(inputs), padding);
}
std::unique_ptr<Layer> MakeDotInteraction(int64_t vectors, int64_t dim, int64_t padding) {
  return std::make_unique<DotInteraction>(vectors, dim, padding);
}
std::unique_ptr<Layer> MakeCross(const std::string& name, int64_t width, int64_t layers, int64_t rank) {
  return std::make_unique<Cross>(name, width, layers, rank);
}
std::unique_ptr<Layer> MakeNorm(const std::string& name, int64_t tokens, int64_t width) {
  return std::make_unique<Norm>(name, tokens, width);
}
std::unique_ptr<Layer> MakeAdd(int64_t inputs, int64_t width) { return std::make_unique<Sum>(inputs, width); }

}  // namespace portolan
