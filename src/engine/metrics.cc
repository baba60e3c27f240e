#include "engine/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace portolan {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void BinaryMetrics::Add(const float* logits, const float* labels, int64_t count) {
  logits_.insert(logits_.end(), logits, logits + count);
  labels_.insert(labels_.end(), labels, labels + count);
}

void BinaryMetrics::Clear() {
  logits_.clear();
  labels_.clear();
}

double BinaryMetrics::Auc() const {
  if (std::any_of(logits_.begin(), logits_.end(), [](float z) { return std::isnan(z); })) return kNan;
  std::vector<uint32_t> order(logits_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return logits_[a] < logits_[b]; });
  // Going up the scores: a group of ties wins against the negatives below, and half against its own.
  double negatives = 0, positives = 0, wins = 0;
  for (size_t begin = 0; begin < order.size();) {
    double group_positives = 0, group_negatives = 0;
    size_t end = begin;
    for (; end < order.size() && logits_[order[end]] == logits_[order[begin]]; ++end) {
      group_positives += labels_[order[end]];
      group_negatives += 1.0 - labels_[order[end]];
    }
    wins += group_positives * (negatives + group_negatives / 2);
    positives += group_positives;
    negatives += group_negatives;
    begin = end;
  }
  return positives > 0 && negatives > 0 ? wins / (positives * negatives) : kNan;
}

double BinaryMetrics::MeanLoss() const {
  if (logits_.empty()) return kNan;
  double sum = 0;
  for (size_t i = 0; i < logits_.size(); ++i) {
    const double z = logits_[i];
    sum += std::max(z, 0.0) - z * labels_[i] + std::log1p(std::exp(-std::abs(z)));
  }
  return sum / static_cast<double>(logits_.size());
}

double BinaryMetrics::NormalizedEntropy() const {
  const double mean =
      std::accumulate(labels_.begin(), labels_.end(), 0.0) / static_cast<double>(std::max<size_t>(labels_.size(), 1));
  if (!(mean > 0 && mean < 1)) return kNan;
  return MeanLoss() / -(mean * std::log(mean) + (1 - mean) * std::log(1 - mean));
}

}  // namespace portolan
