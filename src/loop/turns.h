#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/job.h"
#include "engine/metrics.h"
#include "engine/network.h"

namespace portolan {

// A network in training, whose steps are timed on batches that lie in memory.
class TimedNetwork {
 public:
  // Errors: what the engine does not take of the recipe.
  static Result<std::unique_ptr<TimedNetwork>> Make(const Job& job, const Recipe& recipe);

  // Trains on the batches and keeps the median time of a step as one round. Error: the loss is not finite.
  Status Round(const std::vector<Batch>& batches);
  // Median over the rounds, and (largest - smallest) / median of them.
  double StepSeconds() const;
  double Spread() const;
  // Median of each phase over all steps, by the engine's names.
  std::vector<std::pair<std::string, double>> Phases() const;

  // Median of each layer over all steps, in the plan's order.
  std::vector<LayerTime> Layers() const;

  Network& network() { return *network_; }
  // Predictions made before their batch was trained on, over the last `samples` or more.
  const BinaryMetrics& progressive() const { return progressive_; }
  void ForgetPredictions() { progressive_.Clear(); }
  // After a first round that touched memory for the first time.
  void ForgetRounds() {
    rounds_.clear();
    phases_.clear();
    layers_.clear();
  }

 private:
  explicit TimedNetwork(const Job& job) : job_(job) {}
  const Job& job_;
  std::unique_ptr<Network> network_;
  std::vector<float> logits_;
  int64_t step_ = 0;
  std::vector<double> rounds_;
  std::vector<std::pair<std::string, std::vector<double>>> phases_;
  std::vector<std::vector<LayerTime>> layers_;  // of each step
  BinaryMetrics progressive_;
};

double MedianOf(std::vector<double> values);

}  // namespace portolan
