#include "engine/job.h"

#include <algorithm>

#include "base/text.h"
#include "base/yaml_enum.h"
#include "engine/data/open_reader.h"
#include "engine/data/replay.h"
#include "recipe/rules/rule.h"

namespace portolan {
namespace {

constexpr NamedValue<JobDevice> kDeviceNames[] = {{"cpu", JobDevice::kCpu}, {"cuda", JobDevice::kCuda}};

Result<Model> ReadJobModel(const YamlValue& value, const FindFile& find) {
  if (!value.IsScalar()) return ReadModel(value);
  PORTOLAN_ASSIGN_OR_RETURN(const std::string name, value.String());
  PORTOLAN_ASSIGN_OR_RETURN(const std::string path, find("models", name));
  return LoadModel(path);
}

// Without one: fp32, batch 2048.
Recipe CpuRecipe() {
  Recipe recipe;
  recipe.id = "cpu_fp32";
  recipe.local_batch = 2048;
  recipe.gemm = recipe.activation = DType::kFp32;
  return recipe;
}

Result<Recipe> ReadJobRecipe(const YamlValue& value, const FindFile& find) {
  if (!value.IsScalar()) return ReadRecipe(value);
  PORTOLAN_ASSIGN_OR_RETURN(const std::string name, value.String());
  PORTOLAN_ASSIGN_OR_RETURN(const std::string path, find("recipes", name));
  return LoadRecipe(path);
}

}  // namespace

Result<Job> ReadJob(const YamlValue& value, const FindFile& find) {
  constexpr Range kCount{1, 1e12};
  constexpr Range kCountOrNone{0, 1e12};
  constexpr Range kDeviceMemory{0, 1e15};
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  Job job;
  job.recipe = CpuRecipe();
  const std::optional<YamlValue> model = map.Find("model");
  if (!model) return value.MakeError(ErrorCode::kMissingField, "model: required, but missing");
  PORTOLAN_ASSIGN_OR_RETURN(job.model, ReadJobModel(*model, find));
  map.Visit("recipe", [&](const YamlValue& recipe) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(job.recipe, ReadJobRecipe(recipe, find));
    return {};
  });
  const std::optional<YamlValue> data = map.Find("data");
  if (!data) return value.MakeError(ErrorCode::kMissingField, "data: required, but missing");
  job.data = *data;
  job.device = ReadEnum(map, "device", kDeviceNames, JobDevice::kCpu);
  job.device_memory_bytes = map.Number("device_memory_bytes", kDeviceMemory, 0);
  job.steps = map.Integer("steps", kCountOrNone);
  job.seed = static_cast<uint64_t>(map.Integer("seed", {0, 9e15}, 1));
  map.Visit("learning_rate", [&](const YamlValue& rate) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(job.schedule, ReadSchedule(rate));
    return {};
  });
  map.Visit("optimizer", [&](const YamlValue& optimizer) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap fields, optimizer.Map());
    job.momentum = static_cast<float>(fields.Number("momentum", {0, 0.9999999}, 0.9));
    job.epsilon = static_cast<float>(fields.Number("epsilon", {0, 1}, 1e-8));
    job.beta1 = static_cast<float>(fields.Number("beta1", {0, 0.9999999}, 0.9));
    job.beta2 = static_cast<float>(fields.Number("beta2", {0, 0.9999999}, 0.999));
    return fields.Finish();
  });
  const double norm = map.Number("clip_norm", {0, 1e30}, 0.0);
  job.report_every = map.Integer("report_every", kCount, job.report_every);
  map.Visit("eval", [&](const YamlValue& eval) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap fields, eval.Map());
    job.eval_every = fields.Integer("every", kCountOrNone, 0);
    job.eval_samples = fields.Integer("samples", {0, 1e9}, job.eval_samples);
    return fields.Finish();
  });
  map.Visit("checkpoint", [&](const YamlValue& checkpoint) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap fields, checkpoint.Map());
    job.checkpoint_folder = fields.String("folder");
    job.checkpoint_every = fields.Integer("every", kCountOrNone, 0);
    job.checkpoint_keep = fields.Integer("keep", {1, 1e6}, job.checkpoint_keep);
    return fields.Finish();
  });
  job.import_file = map.String("import", "");
  job.export_file = map.String("export", "");
  job.trace_file = map.String("trace", "");
  job.event_folder = map.String("tensorboard", "");
  job.mlperf_log_file = map.String("mlperf_log", "");
  for (const YamlValue& rule : map.Elements("allow")) {
    PORTOLAN_ASSIGN_OR_RETURN(std::string name, rule.String());
    const auto names = [] {
      std::vector<std::string> all;
      for (const auto& known : AllRules()) all.emplace_back(known->name());
      return all;
    }();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return rule.MakeError(ErrorCode::kNotFound, "no rule is named '" + name + "'" + DidYouMean(name, names) +
                                                      "; rules: " + Join(names, ", "));
    }
    job.allow.insert(std::move(name));
  }
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  // A recipe that clips and a job without a bound: PyTorch recipes for these models clip at 1.
  constexpr double kDefaultClipNorm = 1;
  job.clip_norm = norm > 0 || job.recipe.gradient_clip == GradientClip::kNone ? norm : kDefaultClipNorm;
  PORTOLAN_ASSIGN_OR_RETURN(job.model, ApplyStructure(job.model, job.recipe));
  return job;
}

Result<Job> LoadJob(const std::string& path, const FindFile& find) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(path));
  return ReadJob(value, find);
}

Result<std::unique_ptr<Reader>> MakeReader(const YamlValue& data, const BatchSchema& schema, DataSplit split,
                                           int64_t eval_samples) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, data.Map());
  if (map.Has("format")) {
    if (split == DataSplit::kEval) {
      PORTOLAN_ASSIGN_OR_RETURN(const bool has, HasEvalSplit(map));
      if (!has) return std::unique_ptr<Reader>();
    }
    return OpenReader(map, schema, split);
  }
  const std::string type = map.OneOf("type", {"synthetic", "batches"});
  if (!map.ok()) return tl::make_unexpected(map.Finish().error());
  if (type == "batches") return OpenReplay(data, schema);
  PORTOLAN_ASSIGN_OR_RETURN(const SyntheticOptions options, ReadSyntheticOptions(data));
  const int64_t samples = split == DataSplit::kEval ? eval_samples : options.samples;
  return std::make_unique<SyntheticReader>(schema, options, split, samples);
}

}  // namespace portolan
