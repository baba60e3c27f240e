#include <algorithm>

#include "base/check.h"
#include "engine/cuda_network_state.h"

namespace portolan {

using kernels::ActivationKind;
using kernels::cuda::Assign;
using kernels::cuda::CudaProduct;
using kernels::cuda::Epilogue;

namespace {

template <typename T>
kernels::cuda::Rows<const T> Const(kernels::cuda::Rows<T> rows) {
  return {rows.data, rows.stride};
}

}  // namespace

template <typename T>
void CudaNetwork<T>::Multiply(const char* name, const CudaProduct& product, const void* a, const void* b, void* d,
                              void* bias, void* mask) {
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n), k = static_cast<double>(product.k);
  // Kernels are compared once, for whole batches; a shorter one takes the library's first.
  if (product.m == plan_.options.batch || product.k == plan_.options.batch) gemm_.Prepare(product);
  const double out_bytes = product.fp32_out ? 4 : sizeof(T);
  Do(name, (m * k + k * n) * sizeof(T) + m * n * out_bytes * (product.beta != 0 ? 2 : 1), 2 * m * n * k,
     [&] { gemm_.Run(product, a, b, d, d, bias, mask, MainStream()); });
}

template <typename T>
CudaProduct CudaNetwork<T>::ForwardProduct(int64_t rows, int64_t in, int64_t out, Rows<T> x, int64_t weight_stride,
                                           Rows<T> y, Epilogue epilogue) const {
  return {
      rows,  out,      in,      kernels::Transpose::kNo, kernels::Transpose::kYes, x.stride, weight_stride, y.stride, 0,
      math_, !kNarrow, epilogue};
}
template <typename T>
CudaProduct CudaNetwork<T>::InputGradientProduct(int64_t rows, int64_t in, int64_t out, Rows<T> dy,
                                                 int64_t weight_stride, Rows<T> dx, float beta,
                                                 Epilogue epilogue) const {
  return {rows,
          in,
          out,
          kernels::Transpose::kNo,
          kernels::Transpose::kNo,
          dy.stride,
          weight_stride,
          dx.stride,
          beta,
          math_,
          !kNarrow,
          epilogue};
}
// dw [out, in] = dy^T x, in fp32.
template <typename T>
void CudaNetwork<T>::WeightGradient(const char* name, const Io& io, Rows<T> dy, Rows<T> x, int64_t in, int64_t out,
                                    int parameter) {
  const CudaProduct product = {out,
                               in,
                               io.rows,
                               kernels::Transpose::kYes,
                               kernels::Transpose::kNo,
                               dy.stride,
                               x.stride,
                               places_[parameter].stride,
                               0,
                               math_,
                               true,
                               Epilogue::kNone};
  Multiply(name, product, dy.data, x.data, Gradient(parameter));
}

template <typename T>
void CudaNetwork<T>::Forward(const Io& io) {
  const LayerSpec& spec = plan_.layers[io.layer].layer->spec;
  if (const auto* linear = std::get_if<LinearSpec>(&spec)) return ForwardLinear(*linear, io);
  if (const auto* join = std::get_if<JoinSpec>(&spec)) return ForwardJoin(*join, io);
  if (const auto* cross = std::get_if<CrossSpec>(&spec)) return ForwardCross(*cross, io);
  if (const auto* norm = std::get_if<NormSpec>(&spec)) return ForwardNorm(*norm, io);
  if (const auto* dot = std::get_if<DotInteractionSpec>(&spec)) {
    const int64_t width = kernels::DotInteractionWidth(dot->vectors, dot->dim) + dot->padding;
    Do("dot interaction", static_cast<double>(io.rows * (dot->vectors * dot->dim + width)) * sizeof(T), 0, [&] {
      kernels::cuda::DotInteractionForward<T>({io.rows, dot->vectors, dot->dim, io.x[0].stride, io.y.stride, width},
                                              io.x[0].data, io.y.data, MainStream());
    });
    return;
  }
  const auto& add = std::get<AddSpec>(spec);
  for (size_t i = 0; i < io.x.size(); ++i) {
    Do("add", 3.0 * static_cast<double>(io.rows * add.width) * sizeof(T), 0, [&] {
      kernels::cuda::CopyOrAdd<T>(io.rows, add.width, Const(io.x[i]), io.y, i == 0 ? Assign::kOverwrite : Assign::kAdd,
                                  MainStream());
    });
  }
}

template <typename T>
void CudaNetwork<T>::Backward(const Io& io) {
  const LayerSpec& spec = plan_.layers[io.layer].layer->spec;
  if (const auto* linear = std::get_if<LinearSpec>(&spec)) return BackwardLinear(*linear, io);
  if (const auto* join = std::get_if<JoinSpec>(&spec)) return BackwardJoin(*join, io);
  if (const auto* cross = std::get_if<CrossSpec>(&spec)) return BackwardCross(*cross, io);
  if (const auto* norm = std::get_if<NormSpec>(&spec)) return BackwardNorm(*norm, io);
  if (const auto* dot = std::get_if<DotInteractionSpec>(&spec)) {
    if (io.dx[0].data == nullptr) return;
    PORTOLAN_CHECK(io.dx[0].stride == io.x[0].stride, "vectors and their gradient must lie alike");
    const int64_t width = kernels::DotInteractionWidth(dot->vectors, dot->dim) + dot->padding;
    Do("dot interaction backward", static_cast<double>(io.rows * (2 * dot->vectors * dot->dim + width)) * sizeof(T), 0,
       [&] {
         kernels::cuda::DotInteractionBackward<T>(
             {io.rows, dot->vectors, dot->dim, io.x[0].stride, io.dy.stride, width}, io.x[0].data, io.dy.data,
             io.dx[0].data, MainStream());
       });
    return;
  }
  const auto& add = std::get<AddSpec>(spec);
  for (size_t i = 0; i < io.x.size(); ++i) {
    if (io.dx[i].data == nullptr) continue;
    Do("copy gradient", 2.0 * static_cast<double>(io.rows * add.width) * sizeof(T), 0, [&] {
      kernels::cuda::CopyOrAdd<T>(io.rows, add.width, Const(io.dy), io.dx[i], Assign::kOverwrite, MainStream());
    });
  }
}

// Columns of a layer's input with those up to a multiple of eight, which the rows have room for: products of other
// widths take half the speed of the library's best (on an H200, bf16, 32,768 x 2,048 x 397). Weights hold zeros there.
template <typename T>
int64_t CudaNetwork<T>::PaddedWidth(int value, int64_t width, Side side) const {
  const NetworkValue& place = plan_.values[static_cast<size_t>(value)];
  const int buffer = side == Side::kValue ? place.buffer : place.gradient;
  if (buffer < 0)
    return side == Side::kValue && place.dense_column == 0 && width == plan_.dense_width ? dense_stride_ : width;
  const bool ends_row = place.column + width == plan_.buffers[static_cast<size_t>(buffer)].width;
  const int64_t padded = RoundUp(width, 8);
  return ends_row && place.column + padded <= buffers_[static_cast<size_t>(buffer)].width ? padded : width;
}
// The same for the input of a layer of one input, whose further columns become zero.
template <typename T>
int64_t CudaNetwork<T>::PadInput(const Io& io, int64_t width) {
  const int64_t padded = PaddedWidth(plan_.layers[io.layer].inputs[0], width, Side::kValue);
  if (padded > width && plan_.values[static_cast<size_t>(plan_.layers[io.layer].inputs[0])].buffer >= 0) {
    kernels::cuda::FillColumns<T>(io.rows, padded - width, 0, {io.x[0].data + width, io.x[0].stride}, MainStream());
  }
  return padded;
}

template <typename T>
void CudaNetwork<T>::ForwardLinear(const LinearSpec& spec, const Io& io) {
  const int weight = ParameterOf(io.layer, 0), bias = ParameterOf(io.layer, 1);
  if (IsHead(io.layer)) {
    Do("logits", static_cast<double>(io.rows * spec.in) * sizeof(T), 0, [&] {
      kernels::cuda::LogitForward<T>(io.rows, spec.in, Const(io.x[0]), Master(weight), Master(bias),
                                     logits_.As<float>(), MainStream());
    });
    return;
  }
  const bool relu = spec.activation == ActivationKind::kRelu;
  // What silu and gelu read in the backward pass is kept; the rest is overwritten.
  const Rows<T> product = io.scratch.empty() ? io.y : io.scratch[0];
  const DeviceMemory& mask = layer_states_[io.layer].mask;
  const bool masked = relu && mask.bytes() > 0 && io.pass == Io::Pass::kTrain && io.rows == plan_.options.batch;
  const Epilogue epilogue = masked ? Epilogue::kBiasReluMask : relu ? Epilogue::kBiasRelu : Epilogue::kBias;
  const int64_t in = std::min(PadInput(io, spec.in), places_[weight].stride);
  Multiply("linear", ForwardProduct(io.rows, in, spec.out, io.x[0], places_[weight].stride, product, epilogue),
           io.x[0].data, Operand(weight), product.data, Operand(bias), masked ? mask.As<void>() : nullptr);
  if (relu || spec.activation == ActivationKind::kNone) return;
  Do("activation", 2.0 * static_cast<double>(io.rows * spec.out) * sizeof(T), 0, [&] {
    kernels::cuda::ActivationForward<T>(spec.activation, io.rows, spec.out, Const(product), nullptr, io.y,
                                        MainStream());
  });
}

template <typename T>
void CudaNetwork<T>::ActivationGradient(const LinearSpec& spec, const Io& io) {
  const bool kept = !io.scratch.empty();
  Do("activation backward", 3.0 * static_cast<double>(io.rows * spec.out) * sizeof(T), 0, [&] {
    kernels::cuda::ActivationBackward<T>(
        spec.activation, io.rows, spec.out, kept ? Const(io.scratch[0]) : Rows<const T>{}, nullptr, Const(io.y),
        Const(io.dy), io.dy, Gradient(ParameterOf(io.layer, 1)), partial_.As<float>(), MainStream());
  });
}

template <typename T>
void CudaNetwork<T>::BackwardLinear(const LinearSpec& spec, const Io& io) {
  const int weight = ParameterOf(io.layer, 0), bias = ParameterOf(io.layer, 1);
  const LayerState& state = layer_states_[io.layer];
  if (IsHead(io.layer)) {
    Do("logits backward", 2.0 * static_cast<double>(io.rows * spec.in) * sizeof(T), 0, [&] {
      kernels::cuda::LogitBackward<T>(io.rows, spec.in, Const(io.x[0]), Master(weight), dlogits_.As<float>(), io.dx[0],
                                      Gradient(weight), Gradient(bias), partial_.As<float>(), sum_partial_.As<double>(),
                                      MainStream());
    });
    return;
  }
  // A batch shorter than planned has no masks.
  const bool whole = io.rows == plan_.options.batch;
  if (!state.gradient_done || !whole) ActivationGradient(spec, io);
  // The columns beyond the input's are still zero: its buffer is alive until now.
  const int input = plan_.layers[io.layer].inputs[0];
  const int64_t stride = places_[weight].stride;
  const int64_t in = std::min(PaddedWidth(input, spec.in, Side::kValue), stride);
  WeightGradient("linear weight gradient", io, io.dy, io.x[0], in, spec.out, weight);
  if (io.dx[0].data == nullptr) return;
  if (state.relu_below < 0 || !whole) {
    const bool added = plan_.layers[io.layer].added[0] >= 0;
    const int64_t out_width = added ? spec.in : std::min(PaddedWidth(input, spec.in, Side::kGradient), stride);
    Multiply(
        "linear input gradient",
        InputGradientProduct(io.rows, out_width, spec.out, io.dy, places_[weight].stride, io.dx[0], 0, Epilogue::kNone),
        io.dy.data, Operand(weight), io.dx[0].data);
    return;
  }
  const auto below = static_cast<size_t>(state.relu_below);
  const int bias_below = ParameterOf(below, 1);
  T* sums = bias_gradient_.As<T>();
  Multiply("linear input gradient",
           InputGradientProduct(io.rows, spec.in, spec.out, io.dy, places_[weight].stride, io.dx[0], 0,
                                Epilogue::kReluGradient),
           io.dy.data, Operand(weight), io.dx[0].data, kNarrow ? static_cast<void*>(sums) : Gradient(bias_below),
           layer_states_[below].mask.template As<void>());
  if constexpr (kNarrow) {
    kernels::cuda::Convert<Bf16, float>(1, spec.in, {sums, spec.in}, {Gradient(bias_below), spec.in}, MainStream());
  }
}

template <typename T>
void CudaNetwork<T>::ForwardJoin(const JoinSpec& spec, const Io& io) {
  int64_t column = 0;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const int64_t width = spec.inputs[i].width;
    if (spec.inputs[i].place == JoinedInput::Place::kCopied) {
      Do("join", 2.0 * static_cast<double>(io.rows * width) * sizeof(T), 0, [&] {
        kernels::cuda::CopyOrAdd<T>(io.rows, width, Const(io.x[i]), {io.y.data + column, io.y.stride},
                                    Assign::kOverwrite, MainStream());
      });
    }
    column += width;
  }
  if (spec.padding > 0) {
    kernels::cuda::FillColumns<T>(io.rows, spec.padding, 0, {io.y.data + column, io.y.stride}, MainStream());
  }
}
template <typename T>
void CudaNetwork<T>::BackwardJoin(const JoinSpec& spec, const Io& io) {
  int64_t column = 0;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const int64_t width = spec.inputs[i].width;
    if (spec.inputs[i].place == JoinedInput::Place::kCopied && io.dx[i].data != nullptr) {
      Do("join backward", 2.0 * static_cast<double>(io.rows * width) * sizeof(T), 0, [&] {
        kernels::cuda::CopyOrAdd<T>(io.rows, width, {io.dy.data + column, io.dy.stride}, io.dx[i], Assign::kOverwrite,
                                    MainStream());
      });
    }
    column += width;
  }
}

// Scratch as in layers.cc: x_1 ... x_{L-1}, u of every layer, h of every layer (rank > 0), then du, d, dh.
template <typename T>
void CudaNetwork<T>::ForwardCross(const CrossSpec& spec, const Io& io) {
  const auto layers = static_cast<size_t>(spec.layers), kinds = static_cast<size_t>(spec.rank > 0 ? 3 : 2);
  for (size_t l = 0; l < layers; ++l) {
    const Rows<T> x = l == 0 ? io.x[0] : io.scratch[l - 1], u = io.scratch[layers - 1 + l];
    const Rows<T> y = l + 1 < layers ? io.scratch[l] : io.y;
    const int first = ParameterOf(io.layer, l * kinds), bias = ParameterOf(io.layer, l * kinds + kinds - 1);
    if (spec.rank > 0) {
      const Rows<T> h = io.scratch[2 * layers - 1 + l];
      Multiply("cross", ForwardProduct(io.rows, spec.width, spec.rank, x, places_[first].stride, h, Epilogue::kNone),
               x.data, Operand(first), h.data);
      Multiply("cross",
               ForwardProduct(io.rows, spec.rank, spec.width, h, places_[first + 1].stride, u, Epilogue::kNone), h.data,
               Operand(first + 1), u.data);
    } else {
      Multiply("cross", ForwardProduct(io.rows, spec.width, spec.width, x, places_[first].stride, u, Epilogue::kNone),
               x.data, Operand(first), u.data);
    }
    Do("cross elementwise", (l == 0 ? 3.0 : 4.0) * static_cast<double>(io.rows * spec.width) * sizeof(T), 0, [&] {
      kernels::cuda::CrossForward<T>(io.rows, spec.width, Const(io.x[0]), Const(u), Master(bias), Const(x), y,
                                     MainStream());
    });
  }
}

// dy becomes the gradient of x_{l+1} for each l in turn; x0's share of each layer is summed in dx0, which the last
// product completes.
template <typename T>
void CudaNetwork<T>::BackwardCross(const CrossSpec& spec, const Io& io) {
  const auto layers = static_cast<size_t>(spec.layers), kinds = static_cast<size_t>(spec.rank > 0 ? 3 : 2);
  const size_t first_scratch = 2 * layers - 1 + (spec.rank > 0 ? layers : 0);
  const Rows<T> du = io.scratch[first_scratch];
  const bool wanted = io.dx[0].data != nullptr;
  const Rows<T> dx0 = wanted ? io.dx[0] : io.scratch[first_scratch + 1];
  for (size_t l = layers; l-- > 0;) {
    const Rows<T> x = l == 0 ? io.x[0] : io.scratch[l - 1], u = io.scratch[layers - 1 + l];
    const int first = ParameterOf(io.layer, l * kinds), bias = ParameterOf(io.layer, l * kinds + kinds - 1);
    const bool top = l + 1 == layers;
    Do("cross elementwise backward", (top ? 5.0 : 6.0) * static_cast<double>(io.rows * spec.width) * sizeof(T), 0, [&] {
      kernels::cuda::CrossBackward<T>(
          io.rows, spec.width, Const(io.x[0]), Const(u), Master(bias), Const(io.dy), du, dx0,
          top ? Assign::kOverwrite : Assign::kAdd,
          l == 0 ? kernels::cuda::CrossResidual::kWithResidual : kernels::cuda::CrossResidual::kNone, Gradient(bias),
          partial_.As<float>(), MainStream());
    });
    const Rows<T> below = l == 0 ? dx0 : io.dy;  // gradient of x_l, which has its direct share already
    if (spec.rank > 0) {
      const Rows<T> h = io.scratch[2 * layers - 1 + l], dh = io.scratch[first_scratch + 2];
      Multiply(
          "cross input gradient",
          InputGradientProduct(io.rows, spec.rank, spec.width, du, places_[first + 1].stride, dh, 0, Epilogue::kNone),
          du.data, Operand(first + 1), dh.data);
      WeightGradient("cross weight gradient", io, du, h, spec.rank, spec.width, first + 1);
      WeightGradient("cross weight gradient", io, dh, x, spec.width, spec.rank, first);
      if (l > 0 || wanted) {
        Multiply(
            "cross input gradient",
            InputGradientProduct(io.rows, spec.width, spec.rank, dh, places_[first].stride, below, 1, Epilogue::kNone),
            dh.data, Operand(first), below.data);
      }
    } else {
      WeightGradient("cross weight gradient", io, du, x, spec.width, spec.width, first);
      if (l > 0 || wanted) {
        Multiply(
            "cross input gradient",
            InputGradientProduct(io.rows, spec.width, spec.width, du, places_[first].stride, below, 1, Epilogue::kNone),
            du.data, Operand(first), below.data);
      }
    }
  }
}

template <typename T>
void CudaNetwork<T>::ForwardNorm(const NormSpec& spec, const Io& io) {
  Do("layer norm", 2.0 * static_cast<double>(io.rows * spec.tokens * spec.width) * sizeof(T), 0, [&] {
    kernels::cuda::LayerNormForward<T>(io.rows, spec.tokens, spec.width, Const(io.x[0]),
                                       Master(ParameterOf(io.layer, 0)), Master(ParameterOf(io.layer, 1)), io.y,
                                       MainStream());
  });
}
template <typename T>
void CudaNetwork<T>::BackwardNorm(const NormSpec& spec, const Io& io) {
  const Rows<T> dx = io.dx[0].data != nullptr ? io.dx[0] : io.dy;
  Do("layer norm backward", 3.0 * static_cast<double>(io.rows * spec.tokens * spec.width) * sizeof(T), 0, [&] {
    kernels::cuda::LayerNormBackward<T>(
        io.rows, spec.tokens, spec.width, Const(io.x[0]), Master(ParameterOf(io.layer, 0)), Const(io.dy), dx,
        Gradient(ParameterOf(io.layer, 0)), Gradient(ParameterOf(io.layer, 1)), partial_.As<float>(), MainStream());
  });
}

template class CudaNetwork<float>;
template class CudaNetwork<Bf16>;

}  // namespace portolan
