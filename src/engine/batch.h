#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/data/policy.h"

namespace portolan {

// A batch in the memory of an accelerator, whole and ready: the same arrays as in Batch, null where those are empty.
struct DeviceBatch {
  virtual ~DeviceBatch() = default;
  int64_t size = 0, lookups = 0;
  const float* dense = nullptr;
  const float* labels = nullptr;
  const int64_t* ids = nullptr;
  const int64_t* offsets = nullptr;
  const float* id_weights = nullptr;
  const float* sample_weights = nullptr;
};

// What a reader gives to the training loop, all in host memory.
struct Batch {
  int64_t size = 0;                   // B, samples
  std::vector<float> dense;           // [B, dense width]
  std::vector<float> labels;          // [B], in [0, 1]
  std::vector<int64_t> ids;           // [lookups]: feature by feature, sample by sample
  std::vector<int64_t> offsets;       // [features * B + 1]: bag of feature f and sample b is
                                      // ids[offsets[f * B + b]] to ids[offsets[f * B + b + 1]]
  std::vector<float> id_weights;      // [lookups], or empty: all 1
  std::vector<float> sample_weights;  // [B], or empty: all 1
  // Where the reader feeds an accelerator: of the rest only size and labels need to be filled then.
  std::shared_ptr<const DeviceBatch> device;
};

// What a reader's batches must look like.
struct BatchSchema {
  int64_t dense_width = 0;
  struct Feature {
    std::string name;
    int64_t rows = 0;    // ids lie in [0, rows): the reader guarantees it
    double lookups = 1;  // mean ids a sample, for readers that choose
    double zipf_exponent = 0;
  };
  std::vector<Feature> features;
};

enum class ReadOutcome { kBatch, kEnd };

// Which part of the data a reader gives: the two share no sample.
enum class DataSplit { kTrain, kEval };

// A source of batches. Not thread-safe; the loop may call it from a thread of its own.
class Reader {
 public:
  virtual ~Reader() = default;
  // Fills `batch` with up to `size` samples, fewer only before the end; kEnd: nothing is left and `batch` is empty.
  // Errors name file and line.
  virtual Result<ReadOutcome> Next(int64_t size, Batch* batch) = 0;
  // Where the next call reads, as text that Restore of an equal reader understands. Two readers at one position give
  // the same batches.
  virtual std::string Position() const = 0;
  virtual Status Restore(const std::string& position) = 0;
  // What the policies of a reader of files let pass since it was opened or restored; nothing for the others. Samples of
  // a shuffle window count when the window is read.
  virtual ReadCounts Counts() const { return {}; }
  // After so many batches of one size the same ones come again, and Position is their number; 0: they do not.
  virtual int64_t Cycle() const { return 0; }
};

}  // namespace portolan
