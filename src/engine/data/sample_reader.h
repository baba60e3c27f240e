#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/data/sample_source.h"

namespace portolan {

struct SampleOrder {
  // 0: the order of the files. Otherwise windows of so many samples, one after another, each in a random order: a
  // window is held in memory whole.
  int64_t shuffle_window = 0;
  uint64_t seed = 0;   // of the order; an epoch and a window each have their own
  int64_t epochs = 1;  // passes before the end
};

// Batches from a source. The position names the data: restoring one of other files, order or schema is refused.
class SampleReader : public Reader {
 public:
  // `identity` names the data and how it is read; it becomes part of the position, hashed.
  SampleReader(std::unique_ptr<SampleSource> source, const BatchSchema& schema, SampleOrder order,
               const std::string& identity);

  // As Reader::Next. Error: size < 1, or the source's; the same error again until Restore.
  Result<ReadOutcome> Next(int64_t size, Batch* batch) override;
  std::string Position() const override;
  Status Restore(const std::string& position) override;
  ReadCounts Counts() const override { return source_->counts(); }

 private:
  // Where `window_`, or without shuffling the source, begins.
  struct Place {
    int64_t epoch = 0, window = 0, used = 0;
    SourcePosition source;
  };

  Status Fill(int64_t size, Batch* batch);
  // Reads up to `count` samples in file order into rows_, over the end of an epoch.
  Status ReadOrdered(int64_t count);
  Status ReadShuffled(int64_t count);
  // Reads the window at the source's place and orders it; an empty one at the end of all epochs.
  Status ReadWindow();
  // Goes to the next epoch; false after the last.
  Result<bool> NextEpoch();

  std::unique_ptr<SampleSource> source_;
  SampleOrder order_;
  uint64_t identity_ = 0;
  Place place_;
  int64_t epoch_samples_ = 0;  // read in this epoch: an epoch without samples ends the data
  SampleRows rows_;
  SampleRows window_;
  std::vector<int64_t> permutation_;  // of window_
  bool window_read_ = false;
  Status failed_;
};

// Copies `rows` to a batch: ids feature by feature.
void FillBatch(const SampleRows& rows, Batch* batch);

}  // namespace portolan
