#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "engine/batch.h"

namespace portolan {

// How often rows are used again.
enum class Reuse {
  kModel,     // the model's zipf_exponent of each feature; 0 is uniform
  kMeta2021,  // Meta's published histograms of one production batch (facebookresearch/dlrm_datasets, embedding_bag/)
  kMeta2022,
};

struct SyntheticOptions {
  uint64_t seed = 1;
  Reuse reuse = Reuse::kModel;
  int64_t samples = 0;      // of the training split; 0: without end
  double base_rate = 0.25;  // its logit is added to the teacher's, whose mean is not subtracted
  double signal = 1.5;      // standard deviation of the teacher's logit over the samples, about
};

// Reads {type: synthetic, seed, reuse, samples, base_rate, signal}.
Result<SyntheticOptions> ReadSyntheticOptions(const YamlValue& data);

// Endless samples with production-like reuse and a hidden teacher: every row of every feature has a secret weight and a
// secret two-dimensional vector, every dense number a secret weight; the logit is their mean over each bag plus
// products of the vectors of neighbouring features, and labels are drawn from its sigmoid. So a model can learn the
// labels, rows seen often first, up to the teacher's own AUC. Sample n is a function of (seed, split, n): any position
// can be restored, and evaluation data never repeats training data. Bags have the whole number of lookups at or next to
// the model's mean. One thread; about 1 us a lookup.
class SyntheticReader : public Reader {
 public:
  SyntheticReader(const BatchSchema& schema, const SyntheticOptions& options, DataSplit split, int64_t samples);
  ~SyntheticReader() override;
  Result<ReadOutcome> Next(int64_t size, Batch* batch) override;
  std::string Position() const override;
  Status Restore(const std::string& position) override;

  // The teacher's logit of sample n, for tests: what no model can beat.
  double TeacherLogit(int64_t sample) const;

  // What a generator elsewhere needs to draw the same samples.
  struct Bin {
    double cumulative;     // share of lookups up to and with this bin
    int64_t first, count;  // ranks
  };
  struct FeatureStream {
    int64_t rows;
    double lookups, exponent;
    int64_t multiplier, shift;  // rank -> row id: a bijection, so that hot rows are not neighbours
    std::vector<Bin> bins;      // empty: Zipf
  };
  const std::vector<FeatureStream>& streams() const { return streams_; }
  const SyntheticOptions& options() const { return options_; }
  double scale() const { return scale_; }
  int64_t samples() const { return samples_; }
  uint64_t SplitKey() const { return split_ == DataSplit::kTrain ? 0x1111ull : 0x2222ull; }

 private:
  int64_t DrawRow(const FeatureStream& stream, uint64_t* state) const;
  // Draws sample n; returns the teacher's logit.
  double Draw(int64_t sample, std::vector<std::vector<int64_t>>* bags, float* dense, float* label) const;

  BatchSchema schema_;
  SyntheticOptions options_;
  DataSplit split_;
  int64_t samples_;
  int64_t next_ = 0;
  std::vector<FeatureStream> streams_;
  double scale_ = 1;
};

}  // namespace portolan
