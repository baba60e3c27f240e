#include "loop/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/trainer.h"

namespace portolan {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<std::unique_ptr<TimedNetwork>> TimedNetwork::Make(const Job& job, const Recipe& recipe) {
  std::unique_ptr<TimedNetwork> timed(new TimedNetwork(job));
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkOptions options, OptionsFromRecipe(job.model, recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(NetworkPlan plan, PlanNetwork(job.model, options));
  timed->logits_.resize(static_cast<size_t>(options.batch));
  timed->network_ = std::make_unique<Network>(std::move(plan), job.seed);
  return timed;
}

Status TimedNetwork::Round(const std::vector<Batch>& batches) {
  std::vector<double> times;
  for (const Batch& batch : batches) {
    const StepResult result = network_->TrainStep(batch, SettingsAtStep(job_, ++step_), logits_.data(), {});
    if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("the loss is not finite at step {}: lower learning_rate", step_));
    }
    progressive_.Add(logits_.data(), batch.labels.data(), batch.size);
    double whole = 0;
    std::vector<std::pair<std::string, double>> phases;  // micro-batches mark theirs again
    for (const PhaseTime& phase : network_->phases()) {
      const double seconds = phase.end_s - phase.begin_s;
      whole += seconds;
      const auto same =
          std::find_if(phases.begin(), phases.end(), [&](const auto& p) { return p.first == phase.name; });
      if (same != phases.end()) {
        same->second += seconds;
      } else {
        phases.emplace_back(phase.name, seconds);
      }
    }
    times.push_back(whole);
    layers_.push_back(network_->layer_times());
    for (const auto& phase : phases) {
      auto same = std::find_if(phases_.begin(), phases_.end(), [&](const auto& p) { return p.first == phase.first; });
      if (same == phases_.end()) same = phases_.insert(phases_.end(), {phase.first, {}});
      same->second.push_back(phase.second);
    }
  }
  if (!times.empty()) rounds_.push_back(MedianOf(times));
  return {};
}

double TimedNetwork::StepSeconds() const { return MedianOf(rounds_); }

double TimedNetwork::Spread() const {
  if (rounds_.empty()) return 0;
  const auto [least, most] = std::minmax_element(rounds_.begin(), rounds_.end());
  return (*most - *least) / StepSeconds();
}

std::vector<std::pair<std::string, double>> TimedNetwork::Phases() const {
  std::vector<std::pair<std::string, double>> medians;
  for (const auto& [name, times] : phases_) medians.emplace_back(name, MedianOf(times));
  return medians;
}

std::vector<LayerTime> TimedNetwork::Layers() const {
  std::vector<LayerTime> medians(network_->plan().layers.size());
  for (size_t l = 0; l < medians.size(); ++l) {
    std::vector<double> forward, backward;
    for (const auto& step : layers_) {
      forward.push_back(step[l].forward_s);
      backward.push_back(step[l].backward_s);
    }
    medians[l] = {MedianOf(forward), MedianOf(backward)};
  }
  return medians;
}

}  // namespace portolan
