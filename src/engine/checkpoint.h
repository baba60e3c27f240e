#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/network.h"

namespace portolan {

// Where a run stands besides its parameters.
struct Progress {
  int64_t step = 0;      // steps done
  int64_t samples = 0;   // samples seen
  std::string position;  // of the training reader
  std::string job;       // identity of model, optimizers, formats and seed: a checkpoint of another job is refused
};

// Checkpoints of one run: FOLDER/step_000000123/ with state.safetensors and DONE. A checkpoint is written beside its
// place, synchronised, and renamed, so that at any moment, whatever kills the process or the machine, every folder with
// its final name is whole. Blocks while writing.
class CheckpointFolder {
 public:
  CheckpointFolder(std::string folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {}
  // Writes one and removes all but the newest `keep`. On an error (disk full) the older ones are untouched.
  Status Save(TrainableNetwork* network, const Progress& progress) const;
  // Loads the newest; nullopt where there is none. Errors: a file that is damaged or of another job.
  Result<std::optional<Progress>> LoadNewest(TrainableNetwork* network, const std::string& job) const;

 private:
  std::string folder_;
  int64_t keep_;
};

// Parameters only, fp32 unless the rows are narrower: what other programs read.
Status ExportParameters(TrainableNetwork* network, const std::string& path);
// Every parameter that the model has must be in the file, in the same format and shape.
Status ImportParameters(TrainableNetwork* network, const std::string& path);

}  // namespace portolan
