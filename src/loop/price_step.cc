#include "loop/price_step.h"

#include <algorithm>

#include "loop/embedding_price.h"
#include "loop/kernel_names.h"
#include "loop/step_timeline.h"

namespace portolan {
namespace {

// The layer's tensors as the network will lay them out, without memory: any pointer that is not null says "computed".
LayerIo ShapeOf(const NetworkPlan& plan, const NetworkLayer& layer, int64_t rows) {
  static float computed;
  const auto tensor = [&](int buffer) {
    return buffer < 0 ? Tensor{} : Tensor{&computed, plan.buffers[static_cast<size_t>(buffer)].width};
  };
  LayerIo io;
  io.rows = rows;
  io.format = plan.options.gemm;
  for (const int input : layer.inputs) {
    const NetworkValue& value = plan.values[static_cast<size_t>(input)];
    io.x.push_back(value.buffer < 0 ? Tensor{&computed, plan.dense_width} : tensor(value.buffer));
    io.dx.push_back(tensor(value.gradient));
  }
  const NetworkValue& output = plan.values[static_cast<size_t>(layer.output)];
  io.y = tensor(output.buffer);
  io.dy = tensor(output.gradient);
  return io;
}

// The grid that has a call's times.
std::string GridOf(const KernelCall& call) {
  if (call.kernel != std::string("gemm")) return call.kernel;
  const bool tn = call.gemm.a_transposed == kernels::Transpose::kYes;
  const char* layout = tn ? "tn" : call.gemm.b_transposed == kernels::Transpose::kYes ? "nt" : "nn";
  const char* format = call.gemm.format == kernels::GemmFormat::kBf16 ? "gemm.bf16." : "gemm.fp32.";
  return std::string(format) + layout;
}

}  // namespace

double StepPrice::Of(Phase phase) const {
  double sum = 0;
  for (const double of_class : seconds[phase]) sum += of_class;
  return sum;
}

double StepPrice::Total() const {
  double sum = 0;
  for (int phase = 0; phase < kPhases; ++phase) sum += Of(static_cast<Phase>(phase));
  return sum;
}

void StepPrice::Scale(const ClassTimes& slowdown) {
  for (ClassTimes& phase : seconds) {
    for (size_t c = 0; c < kKernelClasses; ++c) phase[c] *= slowdown[c];
  }
}

std::vector<std::pair<std::string, double>> StepPrice::Phases() const {
  return {{"embedding_forward", Of(kEmbeddingForward)}, {"dense_forward", Of(kDenseForward)},
          {"dense_backward", Of(kDenseBackward)},       {"gradient_norm", Of(kGradientNorm)},
          {"dense_optimizer", Of(kDenseOptimizer)},     {"embedding_backward", Of(kEmbeddingBackward)}};
}

double PriceCall(const KernelCall& call, const Calibration& calibration) {
  const MeasuredGrid& grid = calibration.Grid(GridOf(call));
  if (call.kernel == std::string("gemm")) {
    return grid.At(
        {static_cast<double>(call.gemm.m), static_cast<double>(call.gemm.n), static_cast<double>(call.gemm.k)});
  }
  const auto rows = static_cast<double>(call.rows), width = static_cast<double>(call.width);
  if (call.depth > 0) return grid.At({rows, width, static_cast<double>(call.depth)});
  // Beyond the widest rows measured, time goes by elements alone.
  return grid.At({rows * width, std::min(width, grid.axes[1].back())});
}

namespace {

// `timeline`: of the same step, for what its tensors cost that are not in the cache; null: nothing.
StepPrice PriceOnce(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                    Clipping clipping, const StepTimeline* timeline) {
  StepPrice price;
  const auto micro_batches = static_cast<double>(plan.options.micro_batches);
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    const NetworkLayer& layer = plan.layers[l];
    const LayerIo io = ShapeOf(plan, layer, plan.MicroBatch());
    const LayerCalls calls = layer.layer->Calls(io);
    LayerTime& of_layer = price.layers.emplace_back();
    const auto forward = [&](KernelClass kernel_class, double seconds) {
      price.Add(StepPrice::kDenseForward, kernel_class, seconds);
      of_layer.forward_s += seconds;
    };
    const auto backward = [&](KernelClass kernel_class, double seconds) {
      price.Add(StepPrice::kDenseBackward, kernel_class, seconds);
      of_layer.backward_s += seconds;
    };
    for (const KernelCall& call : calls.forward) {
      forward(ClassOf(GridOf(call)), micro_batches * PriceCall(call, calibration));
    }
    for (const KernelCall& call : calls.backward) {
      backward(ClassOf(GridOf(call)), micro_batches * PriceCall(call, calibration));
    }
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.added[i] < 0) continue;
      const int64_t width = plan.values[static_cast<size_t>(layer.inputs[i])].width;
      backward(KernelClass::kElementwise,
               micro_batches * PriceCall({"accumulate", io.rows, width, 0, {}}, calibration));
    }
    if (timeline == nullptr) continue;
    forward(KernelClass::kElementwise, timeline->Forward(l));
    backward(KernelClass::kElementwise, timeline->Backward(l));
  }
  const auto batch = static_cast<double>(plan.options.batch);
  price.Add(StepPrice::kDenseBackward, KernelClass::kElementwise, calibration.Grid("bce").At({batch}));
  const auto parameters = static_cast<double>(plan.dense_parameters);
  const std::string kind = DenseName(plan.options.dense_optimizer);
  if (plan.options.fusion == Fusion::kEager) {
    const MeasuredGrid& grid = calibration.Grid("dense_separate." + kind);
    for (const Parameter& parameter : plan.parameters) {
      price.Add(StepPrice::kDenseOptimizer, KernelClass::kElementwise,
                grid.At({static_cast<double>(parameter.Count())}));
    }
  } else {
    price.Add(StepPrice::kDenseOptimizer, KernelClass::kElementwise,
              calibration.Grid("dense_fused." + kind).At({parameters}));
  }
  if (timeline != nullptr) price.Add(StepPrice::kDenseOptimizer, KernelClass::kElementwise, timeline->Optimizer());
  const EmbeddingPrice embeddings(plan, lookups, calibration, timeline);
  price.Add(StepPrice::kEmbeddingForward, KernelClass::kLookup, embeddings.Forward());
  price.Add(StepPrice::kEmbeddingBackward, KernelClass::kUpdate, embeddings.Backward());
  if (clipping == Clipping::kNorm) {
    price.Add(StepPrice::kGradientNorm, KernelClass::kElementwise, calibration.Grid("squared_norm").At({parameters}));
    price.Add(StepPrice::kGradientNorm, KernelClass::kUpdate, embeddings.SquaredNorm());
  }
  return price;
}

}  // namespace

StepPrice PriceStep(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                    Clipping clipping) {
  StepPrice price = PriceOnce(plan, lookups, calibration, clipping, nullptr);
  // What is lost from the cache depends on how long the step is, which depends on what is lost.
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds; ++round) {
    const StepTimeline timeline(plan, lookups, calibration, price);
    price = PriceOnce(plan, lookups, calibration, clipping, &timeline);
  }
  return price;
}

}  // namespace portolan
