#include "select/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "base/yaml.h"

namespace portolan {

Result<FamilyConstants> ReadFamilyConstants(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue root, YamlValue::Load(path));
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, root.Map());
  std::vector<std::string> families;
  for (int i = 0; i < kKernelFamilyCount; ++i) {
    if (FindFamily(static_cast<KernelFamily>(i)) != nullptr) {
      families.push_back(KernelFamilyName(static_cast<KernelFamily>(i)));
    }
  }
  const std::string family = map.OneOf("family", families);
  const std::string compute = map.OneOf("compute", DTypeNames());
  if (!map.ok()) return tl::make_unexpected(map.Finish().error());
  FamilyConstants constants = InitialConstants(*ParseKernelFamily(family), *ParseDType(compute));
  const std::span<const ConstantSpec> specs = FindFamily(constants.family)->specs;
  constants.accelerator = map.String("accelerator");
  constants.date = map.String("date");
  constants.command = map.String("command", "");
  constants.inputs = map.String("inputs", "");
  map.String("held_out", "");
  map.Visit("values", [&](const YamlValue& value) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap values, value.Map());
    for (size_t i = 0; i < specs.size(); ++i) {
      constants.values[i] = values.Number(specs[i].name, {specs[i].low, specs[i].high}, specs[i].initial);
    }
    return values.Finish();
  });
  map.Visit("factors", [&](const YamlValue& value) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap factors, value.Map());
    for (const auto& [key, factor] : factors.Entries()) {
      PORTOLAN_ASSIGN_OR_RETURN(constants.factors[key], factor.Number({-10.0, 10.0}));
    }
    return {};
  });
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return constants;
}

Result<std::vector<FamilyConstants>> LoadGemmConstants(const std::vector<std::string>& data_dirs) {
  std::vector<std::string> paths;
  for (const std::string& dir : data_dirs) {
    std::vector<std::string> here;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir + "/constants", error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("gemm_", 0) == 0 && entry.path().extension() == ".yaml") here.push_back(entry.path().string());
    }
    std::sort(here.begin(), here.end());
    paths.insert(paths.begin(), here.begin(), here.end());  // a later directory is found first
  }
  std::vector<FamilyConstants> all;
  for (const std::string& path : paths) {
    PORTOLAN_ASSIGN_OR_RETURN(FamilyConstants constants, ReadFamilyConstants(path));
    all.push_back(std::move(constants));
  }
  return all;
}

Status WriteFamilyConstants(const FamilyConstants& constants, const std::string& held_out, const std::string& path) {
  const FamilyEntry* family = FindFamily(constants.family);
  std::string text = fmt::format(
      "# Written by tools/calibrate_gemm; docs/select.md says what the values mean. Do not edit.\n"
      "family: {}\ncompute: {}\naccelerator: {}\ndate: {}\ncommand: \"{}\"\ninputs: \"{}\"\nheld_out: "
      "\"{}\"\nvalues:\n",
      KernelFamilyName(constants.family), DTypeName(constants.compute), constants.accelerator, constants.date,
      constants.command, constants.inputs, held_out);
  for (size_t i = 0; i < constants.values.size(); ++i) {
    text += fmt::format("  {}: {:.5g}\n", family->specs[i].name, constants.values[i]);
  }
  if (!constants.factors.empty()) text += "factors:\n";
  for (const auto& [key, factor] : constants.factors) text += fmt::format("  \"{}\": {:.4g}\n", key, factor);
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) return tl::make_unexpected(Error{ErrorCode::kIo, "cannot write the file", path, 0, ""});
  return {};
}

FamilyConstants PickConstants(const std::vector<FamilyConstants>& all, KernelFamily family, DType compute,
                              const Accelerator& accelerator) {
  const FamilyConstants* best = nullptr;
  int best_score = -1;
  for (const FamilyConstants& candidate : all) {
    if (candidate.family != family) continue;
    const bool chip = candidate.accelerator == accelerator.id;
    const double wanted = SizeOf(compute).value, width = SizeOf(candidate.compute).value;
    const bool type = candidate.compute == compute;
    const int score =
        (type ? 8 : 0) + (chip ? 4 : 0) + (std::fabs(width - wanted) < 0.2 ? 2 : 0) + (width <= wanted ? 1 : 0);
    if (score > best_score) {
      best_score = score;
      best = &candidate;
    }
  }
  if (best == nullptr) return InitialConstants(family, compute);
  FamilyConstants picked = *best;
  picked.compute = compute;
  return picked;
}

}  // namespace portolan
