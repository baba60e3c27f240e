#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "engine/batch.h"
#include "engine/data/synthetic.h"
#include "engine/network.h"
#include "engine/schedule.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

enum class JobDevice { kCpu, kCuda };

// What `portolan train` runs, read from YAML (docs/train.md is the reference of the format).
struct Job {
  Model model;  // after the recipe's structure changes
  Recipe recipe;
  YamlValue data;               // read by MakeReader
  std::set<std::string> allow;  // rules that change the maths and may be used by plan and optimize
  JobDevice device = JobDevice::kCpu;
  double device_memory_bytes = 0;  // CudaOptions::device_bytes
  int64_t steps = 0;
  uint64_t seed = 1;
  Schedule schedule;
  float momentum = 0.9f, epsilon = 1e-8f, beta1 = 0.9f, beta2 = 0.999f;
  double clip_norm = 0;  // 0: none
  int64_t report_every = 100;
  int64_t eval_every = 0;  // 0: at the end only
  int64_t eval_samples = 65536;
  std::string checkpoint_folder;  // empty: none
  int64_t checkpoint_every = 0;   // 0: at the end only
  int64_t checkpoint_keep = 3;
  std::string import_file;  // parameters to start from
  std::string export_file;  // parameters at the end
  std::string trace_file, event_folder, mlperf_log_file;
  Repeats repeats = Repeats::kAsFast;
  int profile_steps = 0;  // steps after the last one that are timed operation by operation (device cuda)
};

// Finds the file of a model or recipe by name: (kind, name) -> path. Kinds: "models", "recipes".
using FindFile = std::function<Result<std::string>(const std::string& kind, const std::string& name)>;

// Model and recipe may be a name, a path, or stand inside the job. Errors as LoadModel.
Result<Job> LoadJob(const std::string& path, const FindFile& find);
Result<Job> ReadJob(const YamlValue& value, const FindFile& find);

// A reader of the job's data: `type` says which is generated or replayed, `format` which files are read (docs/data.md).
// Null for the eval split of files that have none. Errors name the field.
Result<std::unique_ptr<Reader>> MakeReader(const YamlValue& data, const BatchSchema& schema, DataSplit split,
                                           int64_t eval_samples);

}  // namespace portolan
