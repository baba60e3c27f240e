#include "engine/network.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "engine/kernel_updates.h"
#include "kernels/loss/loss.h"
#include "kernels/number_formats.h"

namespace portolan {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Zeroed by all threads.
void* AllocateZeroed(int64_t bytes) {
  void* memory = AllocateOnHugePages(bytes);
  char* bytes_of = static_cast<char*>(memory);
  constexpr int64_t kChunk = int64_t{1} << 22;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < bytes; at += kChunk) {
    std::memset(bytes_of + at, 0, static_cast<size_t>(std::min(kChunk, bytes - at)));
  }
  return memory;
}

// Uniform in (0, 1): 24 random bits of (key, index), off both ends.
double Uniform(uint32_t key, uint64_t index) {
  const uint32_t bits =
      kernels::RandomBits(key + static_cast<uint32_t>(index >> 32) * 0x9e3779b9u, static_cast<uint32_t>(index));
  return (static_cast<double>(bits >> 8) + 0.5) / 16777216.0;
}

// Standard normal (Box and Muller, 1958).
double Normal(uint32_t key, uint64_t index) {
  return std::sqrt(-2 * std::log(Uniform(key, 2 * index))) * std::cos(2 * M_PI * Uniform(key, 2 * index + 1));
}

}  // namespace

void* AllocateOnHugePages(int64_t bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t rounded = std::max<int64_t>((bytes + kHugePage - 1) / kHugePage, 1) * kHugePage;
  void* memory = std::aligned_alloc(static_cast<size_t>(kHugePage), static_cast<size_t>(rounded));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  return memory;
}

Network::Network(NetworkPlan plan, uint64_t seed) : plan_(std::move(plan)) {
  weights_.resize(static_cast<size_t>(plan_.dense_parameters));
  gradients_.resize(weights_.size());
  state_.resize(weights_.size() * static_cast<size_t>(kernels::DenseStateFloats(plan_.options.dense_optimizer)));
  if (plan_.options.fusion == Fusion::kEager) optimizer_scratch_.resize(2 * weights_.size());
  arena_ = static_cast<float*>(AllocateZeroed(4 * plan_.arena_floats));
  for (const Table& table : plan_.tables) {
    const auto rows = static_cast<int64_t>(table.rows);
    rows_.push_back(AllocateZeroed(rows * kernels::RowBytes(plan_.options.row, table.dim)));
    const int64_t floats = kernels::RowStateFloats(plan_.options.row_optimizer, table.dim);
    row_states_.push_back(floats > 0 ? static_cast<float*>(AllocateZeroed(4 * rows * floats)) : nullptr);
    tables_.push_back({rows_.back(), row_states_.back(), rows, static_cast<int32_t>(table.dim), plan_.options.row});
  }
  layer_times_.resize(plan_.layers.size());
  Initialise(seed);
}

Network::~Network() {
  std::free(arena_);
  std::free(workspace_);
  for (void* rows : rows_) std::free(rows);
  for (float* state : row_states_) std::free(state);
}

void Network::Initialise(uint64_t seed) {
  for (size_t p = 0; p < plan_.parameters.size(); ++p) {
    const Parameter& parameter = plan_.parameters[p];
    float* values = weights_.data() + parameter.offset;
    const uint32_t key = kernels::RowKey(seed ^ kSeedOfParameters, p);
    for (int64_t i = 0; i < parameter.Count(); ++i) {
      values[i] = parameter.initial == InitialValues::kOne ? 1.0f : 0.0f;
      if (parameter.initial == InitialValues::kNormal) {
        values[i] = static_cast<float>(parameter.deviation * Normal(key, static_cast<uint64_t>(i)));
      }
    }
  }
  // Rows: uniform in +-1 / sqrt(rows), as facebookresearch/dlrm.
  for (size_t t = 0; t < tables_.size(); ++t) {
    const kernels::EmbeddingTable& table = tables_[t];
    const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(table.row_count)));
    constexpr int64_t kChunk = 4096;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < table.row_count; first += kChunk) {
      std::vector<float> row(static_cast<size_t>(table.dim));
      for (int64_t r = first; r < std::min(first + kChunk, table.row_count); ++r) {
        const uint32_t key =
            kernels::RowKey(seed ^ kSeedOfRows, (static_cast<uint64_t>(t) << 40) + static_cast<uint64_t>(r));
        for (int32_t d = 0; d < table.dim; ++d) {
          const float uniform =
              static_cast<float>(kernels::RandomBits(key, static_cast<uint32_t>(d)) >> 8) / 16777216.0f;
          row[d] = (2 * uniform - 1) * bound;
        }
        kernels::StoreRow(row.data(), table.dim, table.format,
                          static_cast<char*>(table.rows) + r * kernels::RowBytes(table.format, table.dim));
      }
    }
  }
}

float* Network::BufferAt(int buffer, int64_t first) const {
  const ArenaBuffer& place = plan_.buffers[buffer];
  const int64_t row = place.extent == ArenaBuffer::Extent::kBatch ? first : 0;
  return arena_ + place.offset + row * place.width;
}

Tensor Network::At(const Batch& batch, int value, int64_t first) const {
  const NetworkValue& place = plan_.values[value];
  if (place.buffer < 0) {
    // Layers only read their inputs.
    auto* dense = const_cast<float*>(batch.dense.data());
    return {dense + first * plan_.dense_width + place.dense_column, plan_.dense_width};
  }
  return {BufferAt(place.buffer, first) + place.column, plan_.buffers[place.buffer].width};
}

Tensor Network::GradientAt(int value, int64_t first) const {
  const NetworkValue& place = plan_.values[value];
  if (place.gradient < 0) return {};
  return {BufferAt(place.gradient, first) + place.column, plan_.buffers[place.gradient].width};
}

void Network::BindBatch(const Batch& batch) {
  PORTOLAN_CHECK(batch.size <= plan_.options.batch, "batch larger than planned");
  PORTOLAN_CHECK(
      batch.offsets.size() == plan_.features.size() * static_cast<size_t>(batch.size) + 1 || plan_.features.empty(),
      "offsets do not match the features");
  outputs_.clear();
  output_gradients_.clear();
  for (const NetworkPlan::FeaturePlace& feature : plan_.features) {
    const Tensor output = At(batch, feature.value, 0), gradient = GradientAt(feature.value, 0);
    outputs_.push_back({feature.table, kernels::BagPooling::kSum, output.data + feature.column, output.stride});
    output_gradients_.push_back(
        {feature.table, kernels::BagPooling::kSum, gradient.data + feature.column, gradient.stride});
  }
  bags_.tables = tables_.data();
  bags_.table_count = static_cast<int32_t>(tables_.size());
  bags_.features = outputs_.data();
  bags_.feature_count = static_cast<int32_t>(outputs_.size());
  bags_.batch = batch.size;
  bags_.offsets = batch.offsets.data();
  bags_.ids = batch.ids.data();
  bags_.weights = batch.id_weights.empty() ? nullptr : batch.id_weights.data();
}

LayerIo Network::Io(const Batch& batch, size_t index, int64_t first, int64_t rows, LayerIo::Gradients mode) {
  const NetworkLayer& layer = plan_.layers[index];
  LayerIo io;
  io.rows = rows;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    io.x.push_back(At(batch, layer.inputs[i], first));
    if (layer.added[i] >= 0) {
      io.dx.push_back({BufferAt(layer.added[i], first), plan_.buffers[layer.added[i]].width});
    } else {
      io.dx.push_back(GradientAt(layer.inputs[i], first));
    }
  }
  io.y = At(batch, layer.output, first);
  io.dy = GradientAt(layer.output, first);
  for (const int buffer : layer.scratch) io.scratch.push_back(BufferAt(buffer, first));
  io.weights = weights_.data();
  io.gradients = gradients_.data();
  io.mode = mode;
  io.format = plan_.options.gemm;
  return io;
}

void Network::ForwardLayers(const Batch& batch, int64_t first, int64_t rows) {
  for (size_t l = 0; l < plan_.layers.size(); ++l) {
    const double begin = Now();
    plan_.layers[l].layer->Forward(Io(batch, l, first, rows, LayerIo::Gradients::kOverwrite));
    layer_times_[l].forward_s += Now() - begin;
  }
}

void Network::BackwardLayers(const Batch& batch, int64_t first, int64_t rows, LayerIo::Gradients mode) {
  for (size_t l = plan_.layers.size(); l-- > 0;) {
    const double begin = Now();
    const NetworkLayer& layer = plan_.layers[l];
    const LayerIo io = Io(batch, l, first, rows, mode);
    layer.layer->Backward(io);
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.added[i] < 0) continue;
      const Tensor sum = GradientAt(layer.inputs[i], first);
#pragma omp parallel for schedule(static)
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < plan_.values[layer.inputs[i]].width; ++n) {
          sum.data[r * sum.stride + n] += io.dx[i].data[r * io.dx[i].stride + n];
        }
      }
    }
    layer_times_[l].backward_s += Now() - begin;
  }
}

void Network::Mark(const char* name, double begin_s) { phases_.push_back({name, begin_s, Now()}); }

StepResult Network::TrainStep(const Batch& batch, const UpdateSettings& settings, float* logits,
                              const std::function<void()>& beside) {
  if (beside) beside();
  phases_.clear();
  layer_times_.assign(plan_.layers.size(), {});
  double begin = Now();
  BindBatch(batch);
  ForwardRows();
  Mark("embedding_forward", begin);
  StepResult result;
  const int output = plan_.layers.back().output;
  const int64_t micro = (batch.size + plan_.options.micro_batches - 1) / plan_.options.micro_batches;
  for (int64_t first = 0; first < batch.size; first += micro) {
    const int64_t rows = std::min(micro, batch.size - first);
    begin = Now();
    ForwardLayers(batch, first, rows);
    Mark("dense_forward", begin);
    begin = Now();
    const Tensor y = At(batch, output, first), dy = GradientAt(output, first);
    PORTOLAN_CHECK(y.stride == dy.stride, "logits and their gradient must lie alike");
    const float* weights = batch.sample_weights.empty() ? nullptr : batch.sample_weights.data() + first;
    result.loss += kernels::cpu::BceWithLogits(rows, y.data, y.stride, batch.labels.data() + first, weights,
                                               1.0f / static_cast<float>(batch.size), dy.data);
    for (int64_t r = 0; r < rows; ++r) logits[first + r] = y.data[r * y.stride];
    BackwardLayers(batch, first, rows, first == 0 ? LayerIo::Gradients::kOverwrite : LayerIo::Gradients::kAdd);
    Mark("dense_backward", begin);
  }
  result.loss /= static_cast<double>(batch.size);
  // A step that is not finite must not touch the parameters: the caller stops with the last good ones.
  if (!std::isfinite(result.loss)) return result;

  const auto lookups = static_cast<int64_t>(batch.ids.size());
  bags_.features = output_gradients_.data();
  const int64_t needed = plan_.options.embedding_update == EmbeddingUpdate::kSeparate
                             ? kernels::EmbeddingBackwardSeparateWorkspaceBytes(bags_, lookups)
                             : kernels::EmbeddingBackwardWorkspaceBytes(bags_, lookups);
  if (needed > workspace_bytes_) {
    std::free(workspace_);
    workspace_ = AllocateZeroed(needed);
    workspace_bytes_ = needed;
  }
  double squares = 0;
  if (settings.clip_norm > 0) {
    begin = Now();
    squares = kernels::cpu::SquaredNorm(plan_.dense_parameters, gradients_.data());
    if (lookups > 0) squares += kernels::cpu::EmbeddingGradientSquaredNorm(bags_, workspace_);
    result.gradient_norm = std::sqrt(squares);
    Mark("gradient_norm", begin);
    if (!std::isfinite(squares)) return result;
  }
  Update(settings, squares);
  return result;
}

void Network::Update(const UpdateSettings& settings, double squared_norm) {
  float scale = 1;
  const double norm = std::sqrt(squared_norm);
  if (settings.clip_norm > 0 && norm > settings.clip_norm) scale = static_cast<float>(settings.clip_norm / norm);
  double begin = Now();
  kernels::DenseUpdate dense = DenseUpdateOf(settings, plan_.options.dense_optimizer);
  dense.gradient_scale = scale;
  UpdateDense(dense);
  Mark("dense_optimizer", begin);
  begin = Now();
  kernels::RowUpdate rows = RowUpdateOf(settings, plan_.options.row_optimizer);
  rows.gradient_scale = scale;
  UpdateRows(rows);
  Mark("embedding_backward", begin);
}

void Network::UpdateDense(const kernels::DenseUpdate& update) {
  if (plan_.options.fusion != Fusion::kEager) {
    kernels::cpu::DenseOptimizerStep(update, plan_.dense_parameters, gradients_.data(), weights_.data(), state_.data());
    return;
  }
  // Optimizers keep none, one or two values a parameter.
  const auto values = static_cast<int64_t>(state_.size());
  const auto state_of = [&](int64_t first) { return first < values ? state_.data() + first : nullptr; };
  for (const Parameter& parameter : plan_.parameters) {
    kernels::cpu::DenseOptimizerStepSeparate(
        update, parameter.Count(), gradients_.data() + parameter.offset, weights_.data() + parameter.offset,
        state_of(parameter.offset), state_of(plan_.dense_parameters + parameter.offset), optimizer_scratch_.data());
  }
}

template <typename Visit>
void Network::ForEachTable(Visit visit) {
  std::vector<kernels::EmbeddingFeature> features;
  std::vector<int64_t> offsets, ids;
  std::vector<float> weights;
  for (int32_t t = 0; t < bags_.table_count; ++t) {
    features.clear();
    offsets.assign(1, 0);
    ids.clear();
    weights.clear();
    for (int32_t f = 0; f < bags_.feature_count; ++f) {
      if (bags_.features[f].table != t) continue;
      features.push_back(bags_.features[f]);
      features.back().table = 0;
      const int64_t* of_feature = bags_.offsets + f * bags_.batch;
      const int64_t shift = offsets.back() - of_feature[0];
      for (int64_t b = 1; b <= bags_.batch; ++b) offsets.push_back(of_feature[b] + shift);
      ids.insert(ids.end(), bags_.ids + of_feature[0], bags_.ids + of_feature[bags_.batch]);
      if (bags_.weights != nullptr) {
        weights.insert(weights.end(), bags_.weights + of_feature[0], bags_.weights + of_feature[bags_.batch]);
      }
    }
    if (features.empty()) continue;
    kernels::EmbeddingBags bags{&tables_[static_cast<size_t>(t)],
                                1,
                                features.data(),
                                static_cast<int32_t>(features.size()),
                                bags_.batch,
                                offsets.data(),
                                ids.data(),
                                bags_.weights != nullptr ? weights.data() : nullptr};
    visit(bags, t);
  }
}

void Network::ForwardRows() {
  if (outputs_.empty()) return;
  if (plan_.options.table_kernels == TableKernels::kBatched) return kernels::cpu::EmbeddingForward(bags_);
  for (int32_t f = 0; f < bags_.feature_count; ++f) {
    kernels::EmbeddingBags bags = bags_;
    bags.features += f;
    bags.feature_count = 1;
    bags.offsets += f * bags_.batch;
    kernels::cpu::EmbeddingForward(bags);
  }
}

void Network::UpdateRows(const kernels::RowUpdate& update) {
  if (bags_.feature_count == 0) return;
  const bool fused = plan_.options.embedding_update == EmbeddingUpdate::kFused;
  const auto apply = [&](const kernels::EmbeddingBags& bags, const kernels::RowUpdate& of_bags) {
    if (fused) return kernels::cpu::EmbeddingBackward(bags, of_bags, workspace_);
    kernels::cpu::EmbeddingBackwardSeparate(bags, of_bags, workspace_);
  };
  if (plan_.options.table_kernels == TableKernels::kBatched) return apply(bags_, update);
  ForEachTable([&](const kernels::EmbeddingBags& bags, int32_t table) {
    kernels::RowUpdate of_table = update;  // every table its own random numbers
    of_table.seed += static_cast<uint64_t>(table) * 0xbf58476d1ce4e5b9ull;
    apply(bags, of_table);
  });
}

double Network::Evaluate(const Batch& batch, float* logits) {
  BindBatch(batch);
  ForwardRows();
  double loss = 0;
  const int output = plan_.layers.back().output;
  const int64_t micro = plan_.MicroBatch();
  for (int64_t first = 0; first < batch.size; first += micro) {
    const int64_t rows = std::min(micro, batch.size - first);
    ForwardLayers(batch, first, rows);
    const Tensor y = At(batch, output, first);
    const float* weights = batch.sample_weights.empty() ? nullptr : batch.sample_weights.data() + first;
    loss += kernels::cpu::BceWithLogits(rows, y.data, y.stride, batch.labels.data() + first, weights, 0, nullptr);
    for (int64_t r = 0; r < rows; ++r) logits[first + r] = y.data[r * y.stride];
  }
  return loss / static_cast<double>(std::max<int64_t>(batch.size, 1));
}

std::vector<Network::State> Network::States() {
  std::vector<State> states;
  for (const Parameter& parameter : plan_.parameters) {
    states.push_back({parameter.name, "F32", parameter.shape, weights_.data() + parameter.offset, 4 * parameter.Count(),
                      State::Kind::kParameter});
  }
  const int64_t dense_states = kernels::DenseStateFloats(plan_.options.dense_optimizer);
  if (dense_states > 0) {
    states.push_back({"optimizer.dense",
                      "F32",
                      {dense_states, plan_.dense_parameters},
                      state_.data(),
                      4 * dense_states * plan_.dense_parameters,
                      State::Kind::kOptimizer});
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    AddTableStates(plan_.tables[t].name, tables_[t], plan_.options.row_optimizer, tables_[t].rows, tables_[t].state,
                   &states);
  }
  return states;
}

}  // namespace portolan
