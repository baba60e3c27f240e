#include "hw/catalogue.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "base/yaml.h"
#include "hw/resolve.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> PathError(ErrorCode code, const std::string& path, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message), path, 0, {}});
}

// The *.yaml files directly in `dir`, by name.
std::vector<std::string> YamlFiles(const fs::path& dir) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".yaml" && !entry->is_directory()) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct HardwareFiles {
  std::vector<std::string> accelerators;
  std::vector<std::string> fabrics;
  bool empty() const { return accelerators.empty() && fabrics.empty(); }
};

// Sorts a file by its keys; a map that is neither kind is left out.
Status Classify(const std::string& file, HardwareFiles* files) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue root, YamlValue::Load(file));
  if (!root.IsMap()) return {};
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, root.Map());
  if (map.Has("topology")) {
    files->fabrics.push_back(file);
  } else if (map.Has("compute_units") || map.Has("hbm_bytes") || map.Has("peak_matrix_flops_per_s")) {
    files->accelerators.push_back(file);
  }
  return {};
}

Result<HardwareFiles> FindHardwareFiles(const std::string& path) {
  HardwareFiles files;
  std::error_code error;
  if (!fs::exists(path, error)) {
    return PathError(ErrorCode::kNotFound, path, "no such data directory or file");
  }
  if (!fs::is_directory(path, error)) {
    PORTOLAN_RETURN_IF_ERROR(Classify(path, &files));
    if (!files.empty()) return files;
    return PathError(ErrorCode::kInvalidValue, path,
                     "is neither an accelerator (hbm_bytes, compute_units, ...) nor a fabric (topology, ...)");
  }
  const fs::path accelerators = fs::path(path) / "accelerators";
  const fs::path fabrics = fs::path(path) / "fabrics";
  if (fs::is_directory(accelerators, error) || fs::is_directory(fabrics, error)) {
    files.accelerators = YamlFiles(accelerators);
    files.fabrics = YamlFiles(fabrics);
    return files;
  }
  for (const std::string& file : YamlFiles(path)) PORTOLAN_RETURN_IF_ERROR(Classify(file, &files));
  if (!files.empty()) return files;
  for (const char* other : {"models", "recipes", "validation"}) {
    if (fs::is_directory(fs::path(path) / other, error)) return files;
  }
  return PathError(ErrorCode::kNotFound, path,
                   "holds no hardware: expected accelerators/*.yaml or fabrics/*.yaml in it, or such files themselves");
}

template <typename Map>
std::string UnknownText(const char* what, const std::string& id, const Map& known) {
  std::vector<std::string> ids;
  for (const auto& [known_id, value] : known) ids.push_back(known_id);
  return std::string("unknown ") + what + " '" + id.substr(0, 80) + "'; known: " + Join(ids, ", ") +
         DidYouMean(id, ids);
}

// A fabric that a file names must exist once all directories are read.
Status CheckFabric(const Accelerator& accelerator, const char* key, const std::string& fabric,
                   const std::map<std::string, Fabric>& fabrics) {
  if (accelerator.inherited.count(key) != 0 || fabrics.count(fabric) != 0) return {};
  return tl::make_unexpected(
      Error{ErrorCode::kNotFound, UnknownText("fabric", fabric, fabrics), accelerator.file, 0, key});
}

}  // namespace

Result<Catalogue> Catalogue::Load(const std::vector<std::string>& data_dirs) {
  Catalogue catalogue;
  for (const std::string& dir : data_dirs) PORTOLAN_RETURN_IF_ERROR(catalogue.AddDirectory(dir));
  for (const auto& [id, accelerator] : catalogue.accelerators_) {
    PORTOLAN_RETURN_IF_ERROR(
        CheckFabric(accelerator, "scale_up_fabric", accelerator.scale_up_fabric, catalogue.fabrics_));
    PORTOLAN_RETURN_IF_ERROR(
        CheckFabric(accelerator, "scale_out_fabric", accelerator.scale_out_fabric, catalogue.fabrics_));
  }
  return catalogue;
}

Status Catalogue::AddDirectory(const std::string& dir) {
  PORTOLAN_ASSIGN_OR_RETURN(const HardwareFiles files, FindHardwareFiles(dir));
  std::map<std::string, std::string> seen;
  const auto once = [&](const std::string& id, const std::string& file) -> Status {
    const auto [where, fresh] = seen.insert({id, file});
    if (fresh) return {};
    return tl::make_unexpected(
        Error{ErrorCode::kInvalidValue, "'" + id + "' is already the id of " + where->second, file, 0, "id"});
  };
  for (const std::string& file : files.fabrics) {
    PORTOLAN_ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(file));
    PORTOLAN_RETURN_IF_ERROR(once(fabric.id, file));
    fabrics_[fabric.id] = std::move(fabric);
  }
  seen.clear();
  std::vector<std::string> ids;
  for (const std::string& file : files.accelerators) {
    PORTOLAN_ASSIGN_OR_RETURN(Accelerator accelerator, ReadAccelerator(file));
    PORTOLAN_RETURN_IF_ERROR(once(accelerator.id, file));
    ids.push_back(accelerator.id);
    accelerators_[accelerator.id] = std::move(accelerator);
  }
  ResolveAccelerators(ids, &accelerators_);
  return {};
}

Result<const Accelerator*> Catalogue::FindAccelerator(const std::string& id) const {
  const auto found = accelerators_.find(id);
  if (found == accelerators_.end()) {
    return MakeError(ErrorCode::kNotFound, UnknownText("accelerator", id, accelerators_));
  }
  return &found->second;
}

Result<const Fabric*> Catalogue::FindFabric(const std::string& id) const {
  const auto found = fabrics_.find(id);
  if (found == fabrics_.end()) return MakeError(ErrorCode::kNotFound, UnknownText("fabric", id, fabrics_));
  return &found->second;
}

}  // namespace portolan
