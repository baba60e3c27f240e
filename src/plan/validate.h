#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/estimate_step.h"

namespace portolan {

// What an entry may be used for.
enum class ValidationUse {
  kFit,    // the shared step constants are fitted to it
  kCheck,  // kept aside: only compared
};

// One published or measured training step.
struct ValidationEntry {
  std::string id;
  std::string source;
  std::string date;
  std::string model, recipe, cluster;  // ids, and cluster text as --on takes it
  std::string scale_up, scale_out;     // fabric ids; empty = the accelerator's own
  int64_t global_batch = 0;            // 0 = the recipe's
  std::optional<Seconds> step;         // none when `unmodelled` says why it cannot be predicted
  double tolerance = 0.15;
  ValidationUse use = ValidationUse::kCheck;
  std::string unmodelled;   // reason
  std::string known_fault;  // what is wrong with the prediction, and what the right value is
  std::string file;
  int line = 0;
};

struct ValidationRow {
  ValidationEntry entry;
  std::optional<Seconds> predicted;
  std::vector<ExposedTerm> breakdown;  // of the prediction
  std::string vendor;                  // of the chip
  bool is_sequence_model = false;
  std::string error;  // why there is no prediction, when there should be one
  double RelativeError() const { return predicted && entry.step ? *predicted / *entry.step - 1 : 0; }
  bool WithinTolerance() const;
};

// Reads every *.yaml under <dir>/validation of the data directories, in file-name order.
Result<std::vector<ValidationEntry>> LoadValidation(const std::vector<std::string>& data_dirs);

// <dir>/<kind>/<name>.yaml of the last data directory that has it, or `name` itself when it is a path. The error lists
// the names that exist.
Result<std::string> FindDataFile(const std::vector<std::string>& data_dirs, const std::string& kind,
                                 const std::string& name);

// An entry ready to be priced again and again with other constants: model, recipe, cluster and step graph.
struct PreparedStep {
  Model model;
  Recipe recipe;
  Cluster cluster;
};
Result<PreparedStep> PrepareStep(const ValidationEntry& entry, const Catalogue& catalogue,
                                 const std::vector<std::string>& data_dirs);

std::vector<ValidationRow> RunValidation(const std::vector<ValidationEntry>& entries, const Catalogue& catalogue,
                                         const std::vector<std::string>& data_dirs, const StepConstants& constants);

}  // namespace portolan
