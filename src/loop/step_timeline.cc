#include "loop/step_timeline.h"

#include <algorithm>

#include "loop/price_step.h"

namespace portolan {

StepTimeline::LayerBytes StepTimeline::BytesOf(const NetworkPlan& plan, const NetworkLayer& layer) {
  const double number = 4.0 * static_cast<double>(plan.options.batch);
  LayerBytes bytes;
  if (const auto* join = std::get_if<JoinSpec>(&layer.layer->spec)) {
    for (const JoinedInput& input : join->inputs) {
      if (input.place == JoinedInput::Place::kCopied) bytes.input += number * static_cast<double>(input.width);
    }
    bytes.output = bytes.input;
    return bytes;
  }
  for (const int input : layer.inputs) {
    bytes.input += number * static_cast<double>(plan.values[static_cast<size_t>(input)].width);
  }
  bytes.output = number * static_cast<double>(plan.values[static_cast<size_t>(layer.output)].width);
  for (const Scratch& scratch : layer.layer->scratch) {
    if (scratch.life == Scratch::Life::kForwardToBackward) bytes.kept += number * static_cast<double>(scratch.width);
  }
  for (const Parameter& parameter : layer.layer->parameters) {
    bytes.parameters += 4.0 * static_cast<double>(parameter.Count());
  }
  return bytes;
}

StepTimeline::StepTimeline(const NetworkPlan& plan, const std::vector<TableLookups>& lookups,
                           const Calibration& calibration, const StepPrice& price)
    : c_(calibration), s_per_byte_(calibration.MissSecondsPerByte()) {
  state_floats_ = static_cast<double>(kernels::DenseStateFloats(plan.options.dense_optimizer));
  double pooled = 0, rows = 0, states = 0, parameters = 0;
  for (const NetworkPlan::FeaturePlace& feature : plan.features) {
    pooled += 4.0 * static_cast<double>(plan.options.batch) *
              static_cast<double>(plan.tables[static_cast<size_t>(feature.table)].dim);
  }
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    const auto dim = static_cast<int64_t>(plan.tables[t].dim);
    rows += lookups[t].distinct * static_cast<double>(kernels::RowBytes(plan.options.row, dim));
    states += lookups[t].distinct * 4 * static_cast<double>(kernels::RowStateFloats(plan.options.row_optimizer, dim));
  }
  // The first layer that reads pooled rows is the last to write their gradients.
  size_t reader = 0;
  const auto reads_rows = [&](const NetworkLayer& layer) {
    return std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](int input) {
      const NetworkValue& value = plan.values[static_cast<size_t>(input)];
      return value.producer < 0 && value.buffer >= 0;
    });
  };
  while (reader + 1 < plan.layers.size() && !reads_rows(plan.layers[reader])) ++reader;

  lookups_ = {0.5 * price.Of(StepPrice::kEmbeddingForward), 0.5 * (pooled + rows)};
  Moment now = lookups_ + lookups_;
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    layers_.push_back(BytesOf(plan, plan.layers[l]));
    const LayerBytes& bytes = layers_.back();
    forward_.push_back(now);
    now = now + Moment{price.layers[l].forward_s, bytes.output + bytes.kept + bytes.parameters};
    parameters += bytes.parameters;
  }
  backward_.resize(plan.layers.size());
  for (size_t l = plan.layers.size(); l-- > 0;) {
    const LayerBytes& bytes = layers_[l];
    backward_[l] = now;
    now = now + Moment{price.layers[l].backward_s, bytes.input + bytes.output + bytes.kept + 2 * bytes.parameters};
    if (l == reader) gradients_ = now;
  }
  now = now + Moment{price.Of(StepPrice::kGradientNorm), price.Of(StepPrice::kGradientNorm) > 0 ? parameters : 0};
  optimizer_ = now;
  now = now + Moment{price.Of(StepPrice::kDenseOptimizer), parameters * (2 + state_floats_)};
  const Moment half{0.5 * price.Of(StepPrice::kEmbeddingBackward), 0.5 * (pooled + rows + states)};
  update_ = now + half;
  end_ = update_ + half;
}

double StepTimeline::Missing(const Moment& age) const {
  const double fits = age.bytes > c_.kept_bytes ? c_.kept_bytes / age.bytes : 1;
  return 1 - fits * (1 - c_.Lost(age.seconds));
}

double StepTimeline::Forward(size_t layer) const {
  const LayerBytes& bytes = layers_[layer];
  const Moment since_backward = end_ - backward_[layer] + forward_[layer];
  const Moment since_update = end_ - optimizer_ + forward_[layer];
  return s_per_byte_ *
         (2 * (bytes.output + bytes.kept) * Missing(since_backward) + bytes.parameters * Missing(since_update));
}

double StepTimeline::Backward(size_t layer) const {
  const LayerBytes& bytes = layers_[layer];
  const Moment since_forward = backward_[layer] - forward_[layer];
  const Moment since_update = end_ - optimizer_ + backward_[layer];
  return s_per_byte_ * ((bytes.input + bytes.kept + bytes.parameters) * Missing(since_forward) +
                        2 * bytes.parameters * Missing(since_update));
}

double StepTimeline::Optimizer() const {
  double seconds = 0;
  for (size_t l = 0; l < layers_.size(); ++l) {
    seconds += layers_[l].parameters * (3 * Missing(optimizer_ - backward_[l]) + 2 * state_floats_ * Missing(end_)) *
               s_per_byte_;
  }
  return seconds;
}

double StepTimeline::PooledOutputs() const { return Missing(end_ - gradients_ + lookups_); }
double StepTimeline::PooledGradients() const { return Missing(update_ - gradients_); }

double StepTimeline::MissingRows(const TableLookups& table, double first_age, double more_s) const {
  double kept = 0;
  for (size_t age = 0; age < TableLookups::kAges; ++age) {
    kept += table.aged[age] * (1 - c_.Lost((first_age + static_cast<double>(age)) * end_.seconds + more_s));
  }
  return 1 - kept;
}

double StepTimeline::RowsForward(const TableLookups& table) const {
  return MissingRows(table, 0, (end_ - update_ + lookups_).seconds);
}
double StepTimeline::RowsUpdate(const TableLookups& /*table*/) const { return Missing(update_ - lookups_); }
double StepTimeline::RowStates(const TableLookups& table) const { return MissingRows(table, 1, 0); }

}  // namespace portolan
