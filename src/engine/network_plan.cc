#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/network.h"
#include "kernels/interaction/interaction.h"

namespace portolan {
namespace {

using kernels::ActivationKind;

ActivationKind KindOf(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return ActivationKind::kNone;
    case Activation::kRelu:
      return ActivationKind::kRelu;
    case Activation::kGelu:
      return ActivationKind::kGelu;
    case Activation::kSilu:
      return ActivationKind::kSilu;
    case Activation::kSigmoid:
      return ActivationKind::kSigmoid;
  }
  return ActivationKind::kNone;
}

tl::unexpected<Error> Refuse(const std::string& field, const std::string& message) {
  return tl::make_unexpected(Error{ErrorCode::kUnsupported, message, {}, 0, field});
}

int64_t Padding(int64_t width, int64_t multiple) { return (multiple - width % multiple) % multiple; }

// Values, layers and the joins among them, whose layers are made once it is known which inputs lie in place.
class Builder {
 public:
  Builder(const Model& model, const NetworkOptions& options) : model_(model) { plan_.options = options; }

  Result<NetworkPlan> Build() {
    PORTOLAN_RETURN_IF_ERROR(AddInputs());
    for (const Block& block : model_.blocks) {
      PORTOLAN_RETURN_IF_ERROR(AddBlock(block));
      block_values_.push_back(current_);
    }
    if (plan_.values[current_].width != 1) {
      return Refuse("blocks[" + model_.blocks.back().name + "]",
                    fmt::format("the last block must put out one number, the logit, but it puts out {}",
                                plan_.values[current_].width));
    }
    if (const auto* mlp = std::get_if<MlpBlock>(&model_.blocks.back().body);
        mlp != nullptr && mlp->last_activation != Activation::kNone) {
      return Refuse("blocks[" + model_.blocks.back().name + "].last_activation",
                    "the loss takes logits: must be none (the sigmoid is part of the loss)");
    }
    PORTOLAN_RETURN_IF_ERROR(CheckUse());
    PlaceJoinedInputs();
    MakeBuffers();
    MakeParameters();
    return std::move(plan_);
  }

 private:
  struct PendingJoin {
    int layer;
    int64_t padding;
  };

  Status AddInputs() {
    for (const DenseInput& input : model_.dense_inputs) {
      const double elements = input.shape.elements();
      if (elements != std::floor(elements)) return Refuse("dense_inputs[" + input.name + "]", "must have a whole size");
      NetworkValue value;
      value.width = static_cast<int64_t>(elements);
      value.tokens = std::llround(input.shape.tokens);
      value.dense_column = plan_.dense_width;
      plan_.dense_width += value.width;
      dense_values_.push_back(Add(value));
    }
    plan_.tables = model_.tables;
    for (const FeatureGroup& group : model_.groups) {
      if (group.pooling == Pooling::kNone) {
        return Refuse("groups[" + group.name + "].pooling",
                      "'none' (sequences) is not built in the training engine yet; accepted: sum, mean");
      }
      group_values_.push_back(Add({}));
    }
    for (const Feature& feature : model_.features) {
      NetworkValue& value = plan_.values[group_values_[feature.group]];
      plan_.features.push_back({feature.table, group_values_[feature.group], value.width});
      value.width += model_.tables[feature.table].dim;
      plan_.lookups += feature.lookups;
    }
    for (size_t g = 0; g < group_values_.size(); ++g) {
      plan_.values[group_values_[g]].tokens = std::llround(model_.GroupShape(static_cast<int>(g)).tokens);
    }
    return {};
  }

  int Add(NetworkValue value) {
    plan_.values.push_back(value);
    return static_cast<int>(plan_.values.size()) - 1;
  }
  int AddLayer(std::unique_ptr<Layer> layer, std::vector<int> inputs, int64_t width, int64_t tokens) {
    NetworkValue value;
    value.width = width;
    value.tokens = tokens;
    value.producer = static_cast<int>(plan_.layers.size());
    NetworkLayer added;
    added.layer = std::move(layer);
    added.inputs = std::move(inputs);
    added.output = Add(value);
    plan_.layers.push_back(std::move(added));
    return plan_.layers.back().output;
  }
  int AddJoin(const std::vector<int>& inputs, int64_t padding) {
    int64_t width = padding, tokens = 0;
    for (const int input : inputs) {
      width += plan_.values[input].width;
      tokens += plan_.values[input].tokens;
    }
    joins_.push_back({static_cast<int>(plan_.layers.size()), padding});
    return AddLayer(nullptr, inputs, width, tokens);
  }
  // Kernels without strides read values whose samples follow each other without gaps.
  int WithoutGaps(int value) {
    const bool dense = plan_.values[value].producer < 0 && IsDense(value);
    return dense ? AddJoin({value}, 0) : value;
  }
  // Layers run operation by operation, and joins copy.
  bool Eager() const { return plan_.options.fusion == Fusion::kEager; }
  bool IsDense(int value) const {
    return std::find(dense_values_.begin(), dense_values_.end(), value) != dense_values_.end();
  }

  Status AddBlock(const Block& block) {
    std::vector<int> inputs;
    for (const Block::Input& input : block.inputs) {
      inputs.push_back(input.kind == Block::Input::Kind::kDense   ? dense_values_[input.index]
                       : input.kind == Block::Input::Kind::kGroup ? group_values_[input.index]
                                                                  : block_values_[input.index]);
    }
    const std::string field = "blocks[" + block.name + "]";
    const int64_t width = plan_.values[inputs[0]].width, tokens = plan_.values[inputs[0]].tokens;
    if (const auto* mlp = std::get_if<MlpBlock>(&block.body)) {
      if (tokens != 1 || mlp->groups != 1) {
        return Refuse(field, "an mlp over several tokens or with groups is not built in the training engine yet");
      }
      current_ = inputs[0];
      for (size_t i = 0; i < mlp->widths.size(); ++i) {
        const bool last = i + 1 == mlp->widths.size();
        const std::string name = block.name + "." + std::to_string(i);
        const int64_t in = plan_.values[current_].width, out = mlp->widths[i];
        const ActivationKind kind = KindOf(last ? mlp->last_activation : mlp->activation);
        current_ = AddLayer(Eager() ? MakeEagerLinear(name, in, out, kind) : MakeLinear(name, in, out, kind),
                            {current_}, out, 1);
        if (mlp->layer_norm) current_ = AddLayer(MakeNorm(name + ".norm", 1, out), {current_}, out, 1);
      }
      return {};
    }
    if (const auto* concat = std::get_if<ConcatBlock>(&block.body)) {
      int64_t sum = 0;
      for (const int input : inputs) sum += plan_.values[input].width;
      const bool by_width = concat->axis == ConcatAxis::kWidth;
      current_ = AddJoin(inputs, by_width ? Padding(sum, concat->pad_multiple) : 0);
      if (by_width) plan_.values[current_].tokens = 1;
      return {};
    }
    if (const auto* dot = std::get_if<DotInteractionBlock>(&block.body)) {
      const int joined = AddJoin(inputs, 0);
      const int64_t vectors = plan_.values[joined].tokens, dim = plan_.values[joined].width / vectors;
      const int64_t pairs = kernels::DotInteractionWidth(vectors, dim);
      const int64_t padding = Padding(pairs, dot->pad_multiple);
      current_ =
          AddLayer(Eager() ? MakeEagerDotInteraction(vectors, dim, padding) : MakeDotInteraction(vectors, dim, padding),
                   {joined}, pairs + padding, 1);
      return {};
    }
    if (const auto* cross = std::get_if<CrossBlock>(&block.body)) {
      if (tokens != 1)
        return Refuse(field, "a low_rank_cross over several tokens is not built in the engine; concat first");
      current_ = AddLayer(Eager() ? MakeEagerCross(block.name, width, cross->layers, cross->rank)
                                  : MakeCross(block.name, width, cross->layers, cross->rank),
                          {WithoutGaps(inputs[0])}, width, 1);
      return {};
    }
    if (std::holds_alternative<NormBlock>(block.body)) {
      current_ = AddLayer(MakeNorm(block.name, tokens, width / tokens), {WithoutGaps(inputs[0])}, width, tokens);
      return {};
    }
    if (std::holds_alternative<::portolan::AddBlock>(block.body)) {
      current_ = AddLayer(MakeAdd(static_cast<int64_t>(inputs.size()), width), inputs, width, tokens);
      return {};
    }
    return Refuse(field,
                  fmt::format("a block of type '{}' is not built in the training engine yet; built: mlp, concat, "
                              "dot_interaction, low_rank_cross, norm, add",
                              BlockTypeName(block.body)));
  }

  Status CheckUse() {
    for (const NetworkLayer& layer : plan_.layers) {
      for (const int input : layer.inputs) ++plan_.values[input].consumers;
    }
    for (size_t g = 0; g < group_values_.size(); ++g) {
      if (plan_.values[group_values_[g]].consumers == 0)
        return Refuse("groups[" + model_.groups[g].name + "]", "no block reads it");
    }
    for (size_t b = 0; b + 1 < block_values_.size(); ++b) {
      const bool shared = std::count(block_values_.begin(), block_values_.end(), block_values_[b]) > 1;
      if (plan_.values[block_values_[b]].consumers == 0 && !shared) {
        return Refuse("blocks[" + model_.blocks[b].name + "]", "no later block reads it");
      }
    }
    return {};
  }

  // A value that only a join reads, and whose producer can write with gaps, lies in the join's output from the start.
  void PlaceJoinedInputs() {
    for (const PendingJoin& join : joins_) {
      NetworkLayer& layer = plan_.layers[join.layer];
      std::vector<JoinedInput> inputs;
      int64_t column = 0;
      for (const int input : layer.inputs) {
        const NetworkValue& value = plan_.values[input];
        const bool strided = value.producer < 0
                                 ? !IsDense(input)
                                 : plan_.layers[value.producer].layer != nullptr && IsLinear(value.producer);
        const bool placed = value.consumers == 1 && strided && !Eager();
        if (placed) placed_.push_back({input, layer.output, column});
        inputs.push_back({value.width, placed ? JoinedInput::Place::kInOutput : JoinedInput::Place::kCopied});
        column += value.width;
      }
      layer.layer = MakeJoin(std::move(inputs), join.padding);
    }
  }
  bool IsLinear(int layer) const {
    const auto& parameters = plan_.layers[layer].layer->parameters;
    return parameters.size() == 2 && parameters[0].name.size() > 7 &&
           parameters[0].name.compare(parameters[0].name.size() - 7, 7, ".weight") == 0;
  }

  int Forward(int layer) const { return layer + 1; }
  int Loss() const { return static_cast<int>(plan_.layers.size()) + 1; }
  int Backward(int layer) const { return 2 * Loss() - layer - 1; }
  int End() const { return 2 * Loss() + 1; }

  int NewBuffer(int64_t width, int first, int last) {
    plan_.buffers.push_back({width, ArenaBuffer::Extent::kMicroBatch, first, last, 0});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  void WholeBatch(int buffer) {
    plan_.buffers[buffer].extent = ArenaBuffer::Extent::kBatch;
    plan_.buffers[buffer].first = 0;
    plan_.buffers[buffer].last = End();
  }

  void MakeBuffers() {
    std::vector<bool> is_placed(plan_.values.size());
    for (const Placed& place : placed_) is_placed[place.value] = true;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      NetworkValue& value = plan_.values[v];
      if (is_placed[v] || IsDense(static_cast<int>(v))) continue;
      const bool embeddings = value.producer < 0;
      // The last consumer forward is the first to write the gradient.
      int gradient_from = Loss();
      if (value.consumers > 0) {
        int last_consumer = 0;
        for (size_t l = 0; l < plan_.layers.size(); ++l) {
          const auto& inputs = plan_.layers[l].inputs;
          if (std::count(inputs.begin(), inputs.end(), static_cast<int>(v)) > 0) last_consumer = static_cast<int>(l);
        }
        gradient_from = Backward(last_consumer);
      }
      value.buffer = NewBuffer(value.width, embeddings ? 0 : Forward(value.producer),
                               embeddings ? End() : Backward(value.producer));
      value.gradient = NewBuffer(value.width, gradient_from, embeddings ? End() : Backward(value.producer));
      if (embeddings) {
        WholeBatch(value.buffer);
        WholeBatch(value.gradient);
      }
    }
    for (const Placed& place : placed_) {
      NetworkValue& value = plan_.values[place.value];
      const NetworkValue& parent = plan_.values[place.parent];
      value.buffer = parent.buffer;
      value.gradient = parent.gradient;
      value.column = place.column;
      if (value.producer < 0) {
        WholeBatch(parent.buffer);
        WholeBatch(parent.gradient);
      } else if (plan_.buffers[parent.buffer].extent == ArenaBuffer::Extent::kMicroBatch) {
        for (const int buffer : {parent.buffer, parent.gradient}) {
          ArenaBuffer& span = plan_.buffers[buffer];
          if (buffer == parent.buffer) span.first = std::min(span.first, Forward(value.producer));
          span.last = std::max(span.last, Backward(value.producer));
        }
      }
    }
    std::vector<bool> written(plan_.values.size());
    for (int l = static_cast<int>(plan_.layers.size()) - 1; l >= 0; --l) {
      NetworkLayer& layer = plan_.layers[l];
      for (const int input : layer.inputs) {
        layer.added.push_back(
            written[input] && !IsDense(input) ? NewBuffer(plan_.values[input].width, Backward(l), Backward(l)) : -1);
        written[input] = true;
      }
      for (const Scratch& scratch : layer.layer->scratch) {
        const bool kept = scratch.life == Scratch::Life::kForwardToBackward;
        layer.scratch.push_back(NewBuffer(scratch.width, kept ? Forward(l) : Backward(l), Backward(l)));
      }
    }
    std::vector<int64_t> sizes;
    for (const ArenaBuffer& buffer : plan_.buffers) {
      sizes.push_back(buffer.width *
                      (buffer.extent == ArenaBuffer::Extent::kBatch ? plan_.options.batch : plan_.MicroBatch()));
    }
    plan_.arena_floats = LayOutArena(sizes, &plan_.buffers);
  }

  void MakeParameters() {
    for (NetworkLayer& layer : plan_.layers) {
      for (Parameter& parameter : layer.layer->parameters) {
        parameter.offset = plan_.dense_parameters;
        plan_.dense_parameters += parameter.Count();
        plan_.parameters.push_back(parameter);
      }
    }
  }

  struct Placed {
    int value, parent;
    int64_t column;
  };
  const Model& model_;
  NetworkPlan plan_;
  std::vector<int> dense_values_, group_values_, block_values_;
  std::vector<PendingJoin> joins_;
  std::vector<Placed> placed_;
  int current_ = 0;
};

}  // namespace

Result<NetworkPlan> PlanNetwork(const Model& model, const NetworkOptions& options) {
  return Builder(model, options).Build();
}

}  // namespace portolan
