#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kernels/activation/activation.h"
#include "kernels/gemm/gemm.h"

namespace portolan {

// [rows, width] fp32 in host memory, `stride` numbers from one row to the next.
struct Tensor {
  float* data = nullptr;
  int64_t stride = 0;
};

enum class InitialValues {
  kZero,
  kOne,
  kNormal,  // mean 0, `deviation`
};
// One dense parameter tensor, row-major, inside the flat array of all of them.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  InitialValues initial = InitialValues::kZero;
  double deviation = 0;
  int64_t offset = 0;  // set by the plan
  int64_t Count() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
  }
};

// Memory that a layer needs beside its inputs and its output.
struct Scratch {
  int64_t width = 0;  // numbers a sample
  enum class Life { kForwardToBackward, kBackward } life = Life::kBackward;
};

// What one call sees.
struct LayerIo {
  int64_t rows = 0;
  std::vector<Tensor> x;
  Tensor y;
  std::vector<Tensor> dx;          // overwritten; data = null where no gradient is wanted. Backward only
  Tensor dy;                       // may be overwritten. Backward only
  std::vector<float*> scratch;     // [rows, width] each, in the order of Layer::scratch
  const float* weights = nullptr;  // of all layers: parameter p at weights + p.offset
  float* gradients = nullptr;      // the same layout
  // kAdd: a later micro-batch, whose parameter gradients are added to those of the ones before.
  enum class Gradients { kOverwrite, kAdd } mode = Gradients::kOverwrite;
  kernels::GemmFormat format = kernels::GemmFormat::kFp32;
};

// One call of a CPU kernel, for whoever prices a step: `kernel` names it as calibration does, with the extents that its
// time depends on. Elementwise kernels: [rows, width].
struct KernelCall {
  const char* kernel = "";
  int64_t rows = 0, width = 0;
  int64_t depth = 0;          // dot interaction: [rows, width = vectors, depth = dim]
  kernels::GemmProblem gemm;  // "gemm"
};
struct LayerCalls {
  std::vector<KernelCall> forward, backward;
};

// What a layer computes, for a backend with kernels of its own. Sizes as in the functions below that make layers.
struct JoinedInput {
  int64_t width = 0;
  enum class Place { kInOutput, kCopied } place = Place::kCopied;
};
struct LinearSpec {
  int64_t in = 0, out = 0;
  kernels::ActivationKind activation = kernels::ActivationKind::kNone;
};
struct JoinSpec {
  std::vector<JoinedInput> inputs;
  int64_t padding = 0;
};
struct DotInteractionSpec {
  int64_t vectors = 0, dim = 0, padding = 0;
};
struct CrossSpec {
  int64_t width = 0, layers = 0, rank = 0;
};
struct NormSpec {
  int64_t tokens = 0, width = 0;
};
struct AddSpec {
  int64_t inputs = 0, width = 0;
};
using LayerSpec = std::variant<LinearSpec, JoinSpec, DotInteractionSpec, CrossSpec, NormSpec, AddSpec>;

// One step of the graph. Not thread-safe.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual void Forward(const LayerIo& io) = 0;
  virtual void Backward(const LayerIo& io) = 0;
  // The kernels that Forward and Backward of `io` call. No pointer of it is followed; what is null is not computed.
  virtual LayerCalls Calls(const LayerIo& io) const = 0;

  std::vector<Parameter> parameters;
  std::vector<Scratch> scratch;
  LayerSpec spec;
};

// y = activation(x W^T + b), W [out, in], b [out]. Weights start as N(0, 2 / (in + out)), the bias as N(0, 1 / out):
// facebookresearch/dlrm's initialisation.
std::unique_ptr<Layer> MakeLinear(const std::string& name, int64_t in, int64_t out, kernels::ActivationKind activation);
// Inputs beside each other, then `padding` zero columns. Inputs that are `placed` already lie in y.
std::unique_ptr<Layer> MakeJoin(std::vector<JoinedInput> inputs, int64_t padding);
std::unique_ptr<Layer> MakeDotInteraction(int64_t vectors, int64_t dim, int64_t padding);
// `rank` 0: full matrices. Weights start as N(0, 2 / (in + out)) (Glorot), the bias at zero.
std::unique_ptr<Layer> MakeCross(const std::string& name, int64_t width, int64_t layers, int64_t rank);
std::unique_ptr<Layer> MakeNorm(const std::string& name, int64_t tokens, int64_t width);
std::unique_ptr<Layer> MakeAdd(int64_t inputs, int64_t width);

// The same layers, one operation a pass over memory, as a framework without fusion runs them (eager_layers.cc).
std::unique_ptr<Layer> MakeEagerLinear(const std::string& name, int64_t in, int64_t out,
                                       kernels::ActivationKind activation);
std::unique_ptr<Layer> MakeEagerDotInteraction(int64_t vectors, int64_t dim, int64_t padding);
std::unique_ptr<Layer> MakeEagerCross(const std::string& name, int64_t width, int64_t layers, int64_t rank);

// Parts that both kinds of layers share. y [rows, out] = x [rows, in] W^T + beta y, W [out, in].
kernels::GemmProblem ProductProblem(const LayerIo& io, Tensor x, int64_t in, int64_t out, float beta, Tensor y);
// dx [rows, in] = dy [rows, out] W + beta dx.
kernels::GemmProblem InputGradientProblem(const LayerIo& io, Tensor dy, int64_t in, int64_t out, float beta, Tensor dx);
// dw [out, in] = dy^T x, or added where io.mode says so.
kernels::GemmProblem WeightGradientProblem(const LayerIo& io, Tensor dy, Tensor x, int64_t in, int64_t out);
// d [values.size()] receives `values`, or has them added.
void DeliverGradient(LayerIo::Gradients mode, const std::vector<float>& values, float* d);
std::vector<Parameter> LinearParameters(const std::string& name, int64_t in, int64_t out);
std::vector<Parameter> CrossParameters(const std::string& name, int64_t width, int64_t layers, int64_t rank);

}  // namespace portolan
