#include "loop/price_step.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace portolan {
namespace {

const char* FormatName(kernels::RowFormat format) {
  switch (format) {
    case kernels::RowFormat::kFp32:
      return "fp32";
    case kernels::RowFormat::kFp16:
      return "fp16";
    case kernels::RowFormat::kBf16:
      return "bf16";
    case kernels::RowFormat::kInt8:
      return "int8";
  }
  return "";
}

const char* OptimizerName(kernels::RowOptimizer optimizer) {
  switch (optimizer) {
    case kernels::RowOptimizer::kSgd:
      return "sgd";
    case kernels::RowOptimizer::kAdagrad:
      return "adagrad";
    case kernels::RowOptimizer::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case kernels::RowOptimizer::kAdam:
      return "adam";
    case kernels::RowOptimizer::kRowwiseAdam:
      return "rowwise_adam";
  }
  return "";
}

const char* DenseName(kernels::DenseUpdateKind kind) {
  switch (kind) {
    case kernels::DenseUpdateKind::kSgd:
      return "sgd";
    case kernels::DenseUpdateKind::kMomentum:
      return "momentum";
    case kernels::DenseUpdateKind::kAdagrad:
      return "adagrad";
    case kernels::DenseUpdateKind::kAdam:
      return "adam";
  }
  return "";
}

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

// Passes of the radix sort over keys of so many rows (cpu_runs.h: digits of 11 bits).
double SortPasses(double rows) {
  const auto bits = static_cast<double>(std::bit_width(static_cast<uint64_t>(std::max(rows - 1, 1.0))));
  return std::max(1.0, std::ceil(bits / 11));
}

// Bytes that a step touches, rows of tables left out, and what of them the last level no longer has when they are
// touched again.
class Traffic {
 public:
  Traffic(const NetworkPlan& plan, const Calibration& c) {
    const auto layers = static_cast<int>(plan.layers.size());
    for (const ArenaBuffer& buffer : plan.buffers) {
      const bool whole = buffer.extent == ArenaBuffer::Extent::kBatch;
      const double bytes =
          4.0 * static_cast<double>(buffer.width) * static_cast<double>(whole ? plan.options.batch : plan.MicroBatch());
      if (buffer.first < layers) forward_ += bytes;
      if (buffer.first < layers && buffer.last >= layers) kept_ += bytes;
    }
    // Weights and gradients are read and written, and so is what state the optimizer has.
    const int64_t state = kernels::DenseStateFloats(plan.options.dense_optimizer);
    parameters_ = 4.0 * static_cast<double>(plan.dense_parameters) * static_cast<double>(3 + 2 * state);
    const double touched = 4.0 * static_cast<double>(plan.arena_floats) +
                           4.0 * static_cast<double>(plan.dense_parameters) * static_cast<double>(2 + state);
    // An ideal LRU would lose everything as soon as a step touches more than the cache keeps; hashed and shared caches
    // lose what does not fit.
    spilled_ = touched > c.kept_bytes ? 1 - c.kept_bytes / touched : 0;
    more_per_byte_ = std::max(0.0, 1 / c.copy_bytes_per_s - 1 / c.cache_bytes_per_s);
  }
  double Spilled() const { return spilled_; }
  // Seconds more than with everything in the cache. Outputs of layers are fetched, overwritten and written back;
  double Forward() const { return 2 * forward_ * spilled_ * more_per_byte_; }
  // those kept are read again (gradients take the place of what was just read);
  double Backward() const { return kept_ * spilled_ * more_per_byte_; }
  double Optimizer() const { return parameters_ * spilled_ * more_per_byte_; }

 private:
  double forward_ = 0, kept_ = 0, parameters_ = 0, spilled_ = 0, more_per_byte_ = 0;
};

// Seconds a lookup of an update of rows that have `repeats` lookups each: a part for every lookup and one for every
// row, so linear in 1 / repeats between the grid's points.
double AtRepeats(const MeasuredGrid& grid, double dim, double repeats) {
  const std::vector<double>& ticks = grid.axes[1];
  if (repeats <= ticks.front()) return grid.At({dim, ticks.front()});
  for (size_t i = 1; i < ticks.size(); ++i) {
    if (repeats > ticks[i]) continue;
    const double share = (1 / ticks[i - 1] - 1 / repeats) / (1 / ticks[i - 1] - 1 / ticks[i]);
    return (1 - share) * grid.At({dim, ticks[i - 1]}) + share * grid.At({dim, ticks[i]});
  }
  return grid.At({dim, ticks.back()});
}

class EmbeddingPrice {
 public:
  // `spilled`: part of outputs and gradients of pooled rows, which lie in the arena, that is not in the cache.
  EmbeddingPrice(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                 double spilled)
      : plan_(plan), lookups_(lookups), c_(calibration), format_(FormatName(plan.options.row)), spilled_(spilled) {
    double bytes = 0;
    for (const Table& table : plan.tables) {
      all_rows_ += table.rows;
      bytes += table.rows * static_cast<double>(kernels::RowBytes(plan.options.row, table.dim));
    }
    // Address translations are shared by all tables.
    if (bytes > c_.cold_table_bytes && c_.far_table_bytes > c_.cold_table_bytes) {
      far_ = std::min(std::log(bytes / c_.cold_table_bytes) / std::log(c_.far_table_bytes / c_.cold_table_bytes), 1.0);
    }
    per_table_ = plan.options.table_kernels == TableKernels::kPerTable;
    fused_ = plan.options.embedding_update == EmbeddingUpdate::kFused;
  }

  double Forward() const {
    double seconds = 0;
    for (size_t t = 0; t < plan_.tables.size(); ++t) {
      const TableLookups& counts = lookups_[t];
      if (counts.lookups <= 0) continue;
      const std::vector<double> at = {Dim(t), std::max(counts.lookups / std::max(counts.bags, 1.0), 1.0)};
      // Of the lookups, those that are the first of their row in this batch can miss.
      const double cold = counts.cold_rows * counts.distinct / counts.lookups;
      seconds +=
          counts.lookups * (Mix("embedding_forward." + format_, at, cold) +
                            spilled_ * Extra("embedding_forward.fp32.spilled", "embedding_forward.fp32.warm", at) +
                            cold * far_ * c_.far_lookup_s);
    }
    return seconds > 0 ? seconds + c_.fork_s * (per_table_ ? static_cast<double>(plan_.features.size()) : 1) : 0;
  }

  double Backward() const {
    const std::string update = fused_ ? "embedding_fused." : "embedding_separate.";
    double seconds = 0, all_lookups = 0, all_distinct = 0, weighted_dim = 0;
    for (size_t t = 0; t < plan_.tables.size(); ++t) {
      const TableLookups& counts = lookups_[t];
      if (counts.lookups <= 0) continue;
      const double repeats = counts.lookups / std::max(counts.distinct, 1.0), cold = counts.cold_rows;
      double each = MixRepeats(update + OptimizerName(plan_.options.row_optimizer), Dim(t), repeats, cold);
      if (plan_.options.row != kernels::RowFormat::kFp32) {
        each += MixRepeats(update + format_, Dim(t), repeats, cold) - MixRepeats(update + "sgd", Dim(t), repeats, cold);
      }
      each += spilled_ * std::max(0.0, AtRepeats(c_.Grid("embedding_fused.sgd.spilled"), Dim(t), repeats) -
                                           AtRepeats(c_.Grid("embedding_fused.sgd.warm"), Dim(t), repeats));
      each += cold / repeats * far_ * c_.far_update_s;
      // The grids' tables sort in as many passes as their rows need; this one sorts with all tables of its kernel.
      const double grid_passes = (1 - cold) * SortPasses(c_.warm_table_bytes / (4 * Dim(t))) +
                                 cold * SortPasses(c_.cold_table_bytes / (4 * Dim(t)));
      each += (SortPasses(per_table_ ? plan_.tables[t].rows : all_rows_) - grid_passes) * c_.sort_pass_s;
      seconds += counts.lookups * each;
      if (per_table_) seconds += counts.lookups * ExtraOfCount(update, counts.lookups, Dim(t), repeats);
      all_lookups += counts.lookups;
      all_distinct += std::max(counts.distinct, 1.0);
      weighted_dim += counts.lookups * Dim(t);
    }
    if (all_lookups <= 0) return 0;
    if (!per_table_) {
      seconds +=
          all_lookups * ExtraOfCount(update, all_lookups, weighted_dim / all_lookups, all_lookups / all_distinct);
    }
    return std::max(seconds, 0.0);
  }

  // Of clipping: sorts and sums as the update does, without touching rows.
  double SquaredNorm() const {
    double seconds = 0;
    for (size_t t = 0; t < plan_.tables.size(); ++t) {
      const TableLookups& counts = lookups_[t];
      if (counts.lookups <= 0) continue;
      const double repeats = counts.lookups / std::max(counts.distinct, 1.0);
      seconds += counts.lookups * AtRepeats(c_.Grid("embedding_fused.sgd.warm"), Dim(t), repeats);
    }
    return seconds;
  }

 private:
  double Dim(size_t table) const { return static_cast<double>(plan_.tables[table].dim); }
  double Mix(const std::string& name, const std::vector<double>& at, double cold) const {
    return (1 - cold) * c_.Grid(name + ".warm").At(at) + cold * c_.Grid(name + ".cold").At(at);
  }
  double MixRepeats(const std::string& name, double dim, double repeats, double cold) const {
    return (1 - cold) * AtRepeats(c_.Grid(name + ".warm"), dim, repeats) +
           cold * AtRepeats(c_.Grid(name + ".cold"), dim, repeats);
  }
  double Extra(const char* grid, const char* of, const std::vector<double>& at) const {
    return std::max(0.0, c_.Grid(grid).At(at) - c_.Grid(of).At(at));
  }
  // The other grids are of kCalibratedLookups lookups a call: seconds a lookup more or less of another number.
  double ExtraOfCount(const std::string& update, double count, double dim, double repeats) const {
    const MeasuredGrid& grid = c_.Grid(update + "lookups");
    const double few = grid.axes[2].front(), many = grid.axes[2].back();
    const auto extra = [&](double lookups_a_row) {
      return grid.At({std::min(count, grid.axes[0].back()), dim, lookups_a_row}) -
             grid.At({static_cast<double>(kCalibratedLookups), dim, lookups_a_row});
    };
    // As AtRepeats: a part for every lookup and one for every row.
    const double share = few < many ? std::clamp((1 / few - 1 / repeats) / (1 / few - 1 / many), 0.0, 1.0) : 0;
    return (1 - share) * extra(few) + share * extra(many);
  }

  const NetworkPlan& plan_;
  const std::vector<TableLookups>& lookups_;
  const Calibration& c_;
  const std::string format_;
  const double spilled_;
  double all_rows_ = 0, far_ = 0;
  bool per_table_ = false, fused_ = true;
};

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
  return grid.At({rows * width, width});
}

StepPrice PriceStep(const NetworkPlan& plan, const std::vector<TableLookups>& lookups, const Calibration& calibration,
                    Clipping clipping) {
  StepPrice price;
  const auto micro_batches = static_cast<double>(plan.options.micro_batches);
  for (const NetworkLayer& layer : plan.layers) {
    const LayerIo io = ShapeOf(plan, layer, plan.MicroBatch());
    const LayerCalls calls = layer.layer->Calls(io);
    LayerTime& of_layer = price.layers.emplace_back();
    for (const KernelCall& call : calls.forward) {
      const double seconds = micro_batches * PriceCall(call, calibration);
      price.Add(StepPrice::kDenseForward, ClassOf(GridOf(call)), seconds);
      of_layer.forward_s += seconds;
    }
    for (const KernelCall& call : calls.backward) {
      const double seconds = micro_batches * PriceCall(call, calibration);
      price.Add(StepPrice::kDenseBackward, ClassOf(GridOf(call)), seconds);
      of_layer.backward_s += seconds;
    }
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.added[i] < 0) continue;
      const auto width = static_cast<double>(plan.values[static_cast<size_t>(layer.inputs[i])].width);
      price.Add(StepPrice::kDenseBackward, KernelClass::kElementwise,
                micro_batches * calibration.Grid("accumulate").At({static_cast<double>(io.rows) * width, width}));
    }
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
  const Traffic traffic(plan, calibration);
  price.Add(StepPrice::kDenseForward, KernelClass::kElementwise, traffic.Forward());
  price.Add(StepPrice::kDenseBackward, KernelClass::kElementwise, traffic.Backward());
  price.Add(StepPrice::kDenseOptimizer, KernelClass::kElementwise, traffic.Optimizer());
  const EmbeddingPrice embeddings(plan, lookups, calibration, traffic.Spilled());
  price.Add(StepPrice::kEmbeddingForward, KernelClass::kLookup, embeddings.Forward());
  price.Add(StepPrice::kEmbeddingBackward, KernelClass::kUpdate, embeddings.Backward());
  if (clipping == Clipping::kNorm) {
    price.Add(StepPrice::kGradientNorm, KernelClass::kElementwise, calibration.Grid("squared_norm").At({parameters}));
    price.Add(StepPrice::kGradientNorm, KernelClass::kUpdate, embeddings.SquaredNorm());
  }
  return price;
}

}  // namespace portolan
