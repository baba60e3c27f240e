#pragma once

#include <cstdint>
#include <vector>

namespace portolan {

// Predictions and labels of an interval, and what they say. Labels in [0, 1]: a soft label counts as so much of a
// positive and the rest of a negative.
class BinaryMetrics {
 public:
  void Add(const float* logits, const float* labels, int64_t count);
  void Clear();
  int64_t count() const { return static_cast<int64_t>(logits_.size()); }

  // Area under the ROC curve: the probability that a positive scores above a negative, ties counted half. Exact: sorts
  // all predictions. NaN without both kinds of labels or with a prediction that is NaN.
  double Auc() const;
  // Normalised entropy (He et al., ADKDD 2014): mean cross-entropy over the entropy of the mean label. NaN where all
  // labels are alike.
  double NormalizedEntropy() const;
  double MeanLoss() const;  // NaN when empty

 private:
  std::vector<float> logits_, labels_;
};

}  // namespace portolan
