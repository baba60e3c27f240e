#include "plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "base/yaml_enum.h"
#include "plan/term_errors.h"

namespace portolan {
namespace {

constexpr NamedValue<ValidationUse> kUses[] = {{"fit", ValidationUse::kFit}, {"check", ValidationUse::kCheck}};

std::vector<std::string> YamlFiles(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored)) {
    if (ignored) break;
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<ValidationEntry> ReadEntry(const YamlValue& value, const std::string& source, const std::string& date) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  ValidationEntry entry;
  entry.id = map.String("id");
  entry.source = map.String("source", source);
  entry.date = map.String("date", date);
  entry.unmodelled = map.String("unmodelled", "");
  entry.known_fault = map.String("known_fault", "");
  if (entry.unmodelled.empty()) {
    entry.model = map.String("model");
    entry.recipe = map.String("recipe");
    entry.cluster = map.String("on");
    entry.step = Seconds(map.Number("step_time_s", kPositive));
  } else {
    entry.model = map.String("model", "");
    entry.recipe = map.String("recipe", "");
    entry.cluster = map.String("on", "");
    if (map.Has("step_time_s")) entry.step = Seconds(map.Number("step_time_s", kPositive));
  }
  entry.scale_up = map.String("scale_up", "");
  entry.scale_out = map.String("scale_out", "");
  entry.global_batch = map.Integer("global_batch", {1, 1e12}, 0);
  entry.tolerance = map.Number("tolerance", {0.001, 10}, 0.15);
  entry.use = ReadEnum(map, "use", kUses, ValidationUse::kCheck);
  entry.file = value.file();
  entry.line = value.line();
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  if (entry.source.empty())
    return value.MakeError(ErrorCode::kMissingField, "'source' is required, here or at the top");
  return entry;
}

}  // namespace

bool ValidationRow::WithinTolerance() const {
  return predicted.has_value() && entry.step.has_value() && std::abs(RelativeError()) <= entry.tolerance;
}

Result<std::vector<ValidationEntry>> LoadValidation(const std::vector<std::string>& data_dirs) {
  std::vector<ValidationEntry> entries;
  for (const std::string& directory : data_dirs) {
    for (const std::string& file : YamlFiles(directory + "/validation")) {
      PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(file));
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
      map.String("validation");
      const std::string source = map.String("source", "");
      const std::string date = map.String("date", "");
      for (const YamlValue& element : map.Elements("entries")) {
        PORTOLAN_ASSIGN_OR_RETURN(ValidationEntry entry, ReadEntry(element, source, date));
        entries.push_back(std::move(entry));
      }
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
    }
  }
  return entries;
}

Result<std::string> FindDataFile(const std::vector<std::string>& data_dirs, const std::string& kind,
                                 const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) return name;
  std::vector<std::string> known;
  for (auto directory = data_dirs.rbegin(); directory != data_dirs.rend(); ++directory) {
    const std::string path = *directory + "/" + kind + "/" + name + ".yaml";
    if (std::filesystem::is_regular_file(path, ignored)) return path;
    for (const std::string& file : YamlFiles(*directory + "/" + kind)) {
      known.push_back(std::filesystem::path(file).stem().string());
    }
  }
  std::sort(known.begin(), known.end());
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("{}: '{}' is neither a file nor one of the known names{} Known: {}", kind, name,
                               DidYouMean(name, known).empty() ? "." : DidYouMean(name, known), Join(known, ", ")));
}

namespace {

// Models and recipes that were read: many steps are of one model.
struct Files {
  const std::vector<std::string>& data_dirs;
  std::map<std::string, Model> models;
  std::map<std::string, Recipe> recipes;
};

Result<PreparedStep> Prepare(const ValidationEntry& entry, const Catalogue& catalogue, Files& files) {
  PreparedStep prepared;
  auto model = files.models.find(entry.model);
  if (model == files.models.end()) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string path, FindDataFile(files.data_dirs, "models", entry.model));
    PORTOLAN_ASSIGN_OR_RETURN(Model read, LoadModel(path));
    model = files.models.emplace(entry.model, std::move(read)).first;
  }
  auto recipe = files.recipes.find(entry.recipe);
  if (recipe == files.recipes.end()) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string path, FindDataFile(files.data_dirs, "recipes", entry.recipe));
    PORTOLAN_ASSIGN_OR_RETURN(Recipe read, LoadRecipe(path));
    recipe = files.recipes.emplace(entry.recipe, std::move(read)).first;
  }
  prepared.model = model->second;
  prepared.recipe = recipe->second;
  if (entry.global_batch > 0) {
    prepared.recipe.global_batch = entry.global_batch;
    prepared.recipe.local_batch = 0;
  }
  PORTOLAN_ASSIGN_OR_RETURN(prepared.cluster, catalogue.ParseCluster(entry.cluster, entry.scale_up, entry.scale_out));
  return prepared;
}

}  // namespace

Result<PreparedStep> PrepareStep(const ValidationEntry& entry, const Catalogue& catalogue,
                                 const std::vector<std::string>& data_dirs) {
  Files files{data_dirs, {}, {}};
  return Prepare(entry, catalogue, files);
}

std::vector<ValidationRow> RunValidation(const std::vector<ValidationEntry>& entries, const Catalogue& catalogue,
                                         const std::vector<std::string>& data_dirs, const StepConstants& constants) {
  std::vector<ValidationRow> rows;
  Files files{data_dirs, {}, {}};
  for (const ValidationEntry& entry : entries) {
    ValidationRow row;
    row.entry = entry;
    if (entry.unmodelled.empty()) {
      const Result<PreparedStep> prepared = Prepare(entry, catalogue, files);
      if (!prepared) {
        row.error = FormatError(prepared.error());
      } else if (const auto estimate = EstimateStep(prepared->model, prepared->recipe, prepared->cluster, constants)) {
        row.predicted = estimate->step;
        row.breakdown = estimate->breakdown;
        row.vendor = prepared->cluster.accelerator.vendor;
        row.is_sequence_model = IsSequenceModel(prepared->model);
      } else {
        row.error = FormatError(estimate.error());
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace portolan
