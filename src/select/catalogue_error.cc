#include "select/catalogue_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "base/yaml.h"

namespace portolan {
namespace {

constexpr const char* kFile = "/constants/whole_catalogue.yaml";
constexpr int kWidestAccessBytes = 16;
// Order of GemmLayout and of RowKind.
const std::vector<std::string> kLayouts = {"TN", "NN", "NT"};
const std::vector<std::string> kRowKinds = {"aligned", "misaligned"};

template <typename Enum>
Enum Place(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

ErrorSummary ReadSummary(YamlMap* map, const std::string& key) {
  ErrorSummary summary;
  if (!map->Has(key)) map->Fail(map->value().MakeError(ErrorCode::kInvalidValue, key + " is missing"));
  map->Visit(key, [&](const YamlValue& value) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap own, value.Map());
    summary.mean = own.Number("mean", kNonNegative);
    summary.median = own.Number("median", kNonNegative);
    summary.p90 = own.Number("p90", kNonNegative);
    return own.Finish();
  });
  return summary;
}

Result<CatalogueError> ReadEntry(const YamlValue& value) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  std::vector<std::string> families;
  for (int i = 0; i < kKernelFamilyCount; ++i) families.push_back(KernelFamilyName(static_cast<KernelFamily>(i)));
  CatalogueError entry;
  entry.set = map.String("set");
  entry.chip = map.String("chip");
  entry.isa = map.String("isa");
  const std::string family = map.OneOf("family", families);
  const std::string compute = map.OneOf("compute", DTypeNames());
  const std::string rows = map.OneOf("rows", kRowKinds);
  for (const YamlValue& layout : map.Elements("layouts")) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string name, layout.OneOf(kLayouts));
    entry.layouts.push_back(Place<GemmLayout>(kLayouts, name));
  }
  entry.n = static_cast<int>(map.Integer("n", {1, 1e9}));
  entry.taught = map.Bool("taught", true);
  entry.kernel_error = map.Number("kernel_error", {1e-6, 10.0});
  entry.select = ReadSummary(&map, "select");
  entry.kernel_blind = ReadSummary(&map, "kernel_blind");
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  entry.family = *ParseKernelFamily(family);
  entry.compute = *ParseDType(compute);
  entry.rows = Place<RowKind>(kRowKinds, rows);
  return entry;
}

std::string Show(const ErrorSummary& s) {
  return fmt::format("{{mean: {:.4f}, median: {:.4f}, p90: {:.4f}}}", s.mean, s.median, s.p90);
}

}  // namespace

ErrorSummary SummaryOf(std::vector<double> errors) {
  ErrorSummary summary;
  if (errors.empty()) return summary;
  for (double& error : errors) {
    error = std::fabs(error);
    summary.mean += error / static_cast<double>(errors.size());
  }
  std::sort(errors.begin(), errors.end());
  summary.median = errors[errors.size() / 2];
  summary.p90 = errors[errors.size() * 9 / 10];
  return summary;
}

RowKind RowKindOf(const GemmProblem& problem) {
  const int least = std::min({RowAlignmentA(problem), RowAlignmentB(problem), RowAlignmentD(problem)});
  return least < kWidestAccessBytes ? RowKind::kMisaligned : RowKind::kAligned;
}

Result<std::vector<CatalogueError>> LoadCatalogueErrors(const std::vector<std::string>& data_dirs) {
  std::vector<CatalogueError> all;
  for (const std::string& dir : data_dirs) {
    std::error_code ignored;
    if (!std::filesystem::exists(dir + kFile, ignored)) continue;
    PORTOLAN_ASSIGN_OR_RETURN(const YamlValue root, YamlValue::Load(dir + kFile));
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, root.Map());
    map.String("date");
    map.String("command");
    const std::vector<YamlValue> entries = map.Elements("sets");
    PORTOLAN_RETURN_IF_ERROR(map.Finish());
    for (const YamlValue& value : entries) {
      PORTOLAN_ASSIGN_OR_RETURN(CatalogueError entry, ReadEntry(value));
      all.push_back(std::move(entry));
    }
  }
  return all;
}

Status WriteCatalogueErrors(const std::vector<CatalogueError>& errors, const std::string& date,
                            const std::string& command, const std::string& path) {
  std::string text = fmt::format(
      "# Written by tools/calibrate_gemm/catalogue_errors; src/select/catalogue_error.h says what the keys mean and "
      "how\n"
      "# the planner uses them. Do not edit.\ndate: {}\ncommand: \"{}\"\nsets:\n",
      date, command);
  for (const CatalogueError& e : errors) {
    std::vector<std::string> layouts;
    for (const GemmLayout layout : e.layouts) layouts.push_back(kLayouts[static_cast<size_t>(layout)]);
    text += fmt::format(
        "  - set: {}\n    chip: {}\n    isa: {}\n    family: {}\n    compute: {}\n    rows: {}\n    layouts: [{}]\n"
        "    n: {}\n    taught: {}\n    kernel_error: {:.4f}\n    select: {}\n    kernel_blind: {}\n",
        e.set, e.chip, e.isa, KernelFamilyName(e.family), DTypeName(e.compute), kRowKinds[static_cast<size_t>(e.rows)],
        Join(layouts, ", "), e.n, e.taught, e.kernel_error, Show(e.select), Show(e.kernel_blind));
  }
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) return tl::make_unexpected(Error{ErrorCode::kIo, "cannot write the file", path, 0, ""});
  return {};
}

const CatalogueError* FindQualified(const std::vector<CatalogueError>& errors, const std::string& isa,
                                    const GemmProblem& problem) {
  const RowKind rows = RowKindOf(problem);
  const CatalogueError* found = nullptr;
  for (const CatalogueError& candidate : errors) {
    const auto about = [&](const CatalogueError& e) {
      return e.isa == isa && e.compute == problem.compute && e.rows == rows && e.family == candidate.family;
    };
    const bool holds_layout =
        std::find(candidate.layouts.begin(), candidate.layouts.end(), problem.layout) != candidate.layouts.end();
    if (!about(candidate) || candidate.taught || candidate.n < kLeastShapes || !holds_layout) continue;
    const bool qualified = std::all_of(errors.begin(), errors.end(), [&](const CatalogueError& e) {
      return !about(e) || e.select.NoWorseThan(e.kernel_blind);
    });
    if (qualified && (found == nullptr || candidate.select.mean < found->select.mean)) found = &candidate;
  }
  return found;
}

}  // namespace portolan
