#include "engine/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace portolan {
namespace {

double AucOf(const std::vector<float>& logits, const std::vector<float>& labels) {
  BinaryMetrics metrics;
  metrics.Add(logits.data(), labels.data(), static_cast<int64_t>(logits.size()));
  return metrics.Auc();
}

TEST(Auc, ByHand) {
  // Positives 0.8, 0.4; negatives 0.6, 0.2: 0.8 beats both, 0.4 beats one of two: 3 of 4 pairs.
  EXPECT_DOUBLE_EQ(AucOf({0.8f, 0.6f, 0.4f, 0.2f}, {1, 0, 1, 0}), 0.75);
  EXPECT_DOUBLE_EQ(AucOf({1, 1, 1}, {1, 0, 0}), 0.5);  // ties count half
  EXPECT_DOUBLE_EQ(AucOf({2, 1, 1}, {1, 1, 0}), 0.75);
}

TEST(Auc, IsUndefinedWithoutBothKinds) {
  EXPECT_TRUE(std::isnan(AucOf({1, 2}, {1, 1})));
  EXPECT_TRUE(std::isnan(AucOf({}, {})));
  EXPECT_TRUE(std::isnan(AucOf({NAN, 1}, {1, 0})));
}

TEST(Auc, AgreesWithAllPairs) {
  std::vector<float> logits, labels;
  for (int i = 0; i < 97; ++i) {
    logits.push_back(static_cast<float>(i * 37 % 23));
    labels.push_back(i * 11 % 7 < 3 ? 1.0f : 0.0f);
  }
  double wins = 0, pairs = 0;
  for (size_t p = 0; p < logits.size(); ++p) {
    for (size_t n = 0; n < logits.size(); ++n) {
      if (labels[p] != 1 || labels[n] != 0) continue;
      wins += logits[p] > logits[n] ? 1 : logits[p] == logits[n] ? 0.5 : 0;
      ++pairs;
    }
  }
  EXPECT_NEAR(AucOf(logits, labels), wins / pairs, 1e-12);
}

TEST(NormalizedEntropy, PredictingTheMeanIsOne) {
  BinaryMetrics metrics;
  const float logit = std::log(1.0f / 3.0f);  // probability 1/4
  const std::vector<float> logits(4, logit), labels = {1, 0, 0, 0};
  metrics.Add(logits.data(), labels.data(), 4);
  EXPECT_NEAR(metrics.NormalizedEntropy(), 1, 1e-6);
  metrics.Clear();
  EXPECT_TRUE(std::isnan(metrics.NormalizedEntropy()));
}

}  // namespace
}  // namespace portolan
