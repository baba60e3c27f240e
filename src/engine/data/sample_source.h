#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/data/policy.h"

namespace portolan {

enum class Bags {
  kOneEach,   // every feature of every sample has exactly one id
  kVariable,  // any number
};

// Samples in the order of their source: what a format's parser writes and a batch is made from.
struct SampleRows {
  SampleRows(int64_t dense_values, int64_t feature_count, Bags kind)
      : dense_width(dense_values), features(feature_count), bags(kind) {}

  int64_t dense_width = 0, features = 0;
  Bags bags = Bags::kOneEach;
  int64_t size = 0;           // samples; vectors may be longer
  std::vector<float> labels;  // [size]
  std::vector<float> dense;   // [size, dense_width]
  std::vector<int64_t> ids;   // kOneEach: [size, features]; kVariable: [lookups], sample by sample
  std::vector<int64_t> ends;  // kVariable: [size, features], the end of each bag in ids

  void Clear() {
    size = 0;
    if (bags == Bags::kVariable) ids.clear();
  }
  // Makes room for `count` more samples.
  void Reserve(int64_t count);
  // Copies one sample of rows of the same shape.
  void Append(const SampleRows& from, int64_t sample);
  int64_t BagBegin(int64_t sample, int64_t feature) const {
    const int64_t bag = sample * features + feature;
    return bag == 0 ? 0 : ends[bag - 1];
  }
};

// A place in a source, at the start of a sample.
struct SourcePosition {
  int64_t part = 0;    // which file
  int64_t offset = 0;  // bytes of a text file, rows of a binary one
};

// One pass over the samples of a data set: what a format has to provide. SampleReader makes batches of it.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual Bags bags() const = 0;
  // Appends up to `count` samples, fewer only at the end. After an error `rows` holds nothing that can be used.
  virtual Status Read(int64_t count, SampleRows* rows) = 0;
  virtual SourcePosition Position() const = 0;
  // Error: no such place in these files.
  virtual Status Seek(SourcePosition position) = 0;
  virtual SourcePosition Start() const = 0;
  const ReadCounts& counts() const { return policies_.counts(); }
  void ResetCounts() { policies_.ResetCounts(); }

 protected:
  explicit SampleSource(PolicyBook policies) : policies_(std::move(policies)) {}
  // Ends a sample that was parsed behind the last one of `rows`, which had `ids_before` ids: kept, it is one more;
  // skipped, it leaves nothing.
  void Settle(RowOutcome outcome, size_t ids_before, SampleRows* rows) {
    if (outcome == RowOutcome::kKept) {
      ++rows->size;
      policies_.CountSample();
    } else {
      if (rows->bags == Bags::kVariable) rows->ids.resize(ids_before);
      policies_.CountSkipped();
    }
  }
  PolicyBook policies_;
};

}  // namespace portolan
