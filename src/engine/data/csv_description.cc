#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/yaml_enum.h"
#include "engine/data/csv_source.h"

namespace portolan {
namespace {

constexpr NamedValue<ColumnKind> kKinds[] = {{"label", ColumnKind::kLabel},
                                             {"dense", ColumnKind::kDense},
                                             {"categorical", ColumnKind::kCategorical},
                                             {"multi_hot", ColumnKind::kMultiHot},
                                             {"ignored", ColumnKind::kIgnored}};
constexpr NamedValue<CsvColumn::Digits> kDigits[] = {{"decimal", CsvColumn::Digits::kDecimal},
                                                     {"hexadecimal", CsvColumn::Digits::kHexadecimal}};

// One byte that can stand between fields.
char ReadSeparator(YamlMap* map, const std::string& key, char fallback) {
  const std::string text = map->String(key, std::string(1, fallback));
  const std::optional<YamlValue> value = map->Find(key);
  const bool usable = text.size() == 1 && text[0] != '"' && text[0] != '\n' && text[0] != '\r';
  if (usable || !value) return usable ? text[0] : fallback;
  map->Fail(
      value->MakeError(ErrorCode::kInvalidValue,
                       fmt::format("'{}' must be one byte, not a quote or an end of line; TAB is \"\\t\"", text)));
  return fallback;
}

Result<CsvColumn> ReadColumn(const YamlValue& value, const BatchSchema& schema) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  CsvColumn column;
  column.name = map.String("name");
  column.kind = ReadEnum(map, "kind", kKinds, ColumnKind::kIgnored);
  if (!map.Has("kind")) map.String("kind");  // required: says so
  if (column.kind == ColumnKind::kLabel && map.Has("threshold")) {
    column.has_threshold = true;
    column.threshold = map.Number("threshold", {});
  }
  if (column.kind == ColumnKind::kDense) {
    column.transform = ReadEnum(map, "transform", kDenseTransforms, DenseTransform::kNone);
  }
  if (column.kind == ColumnKind::kCategorical || column.kind == ColumnKind::kMultiHot) {
    column.ids = ReadEnum(map, "ids", kIdRules, IdRule::kExact);
    if (column.ids != IdRule::kHash) column.digits = ReadEnum(map, "digits", kDigits, CsvColumn::Digits::kDecimal);
    column.feature = map.String("feature", column.name);
    if (column.kind == ColumnKind::kMultiHot) column.separator = ReadSeparator(&map, "separator", '|');
    const int64_t rows = map.Integer("rows", {1, 1e13}, 0);
    for (const BatchSchema::Feature& feature : schema.features) {
      if (map.ok() && rows != 0 && feature.name == column.feature && feature.rows != rows) {
        return map.Find("rows")->MakeError(
            ErrorCode::kInvalidValue,
            fmt::format("{} rows here, {} in the model's feature '{}'", rows, feature.rows, feature.name));
      }
    }
  }
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return column;
}

}  // namespace

CsvDescription CsvDescription::Read(YamlMap* map, const BatchSchema& schema) {
  CsvDescription description;
  description.header = map->Bool("header", true) ? Header::kPresent : Header::kAbsent;
  description.separator = ReadSeparator(map, "separator", ',');
  const std::vector<YamlValue> columns = map->Elements("columns");
  for (const YamlValue& value : columns) {
    Result<CsvColumn> column = ReadColumn(value, schema);
    if (!column) {
      map->Fail(std::move(column).error());
      break;
    }
    const bool twice = std::any_of(description.columns.begin(), description.columns.end(),
                                   [&](const CsvColumn& other) { return other.name == column->name; });
    if (twice) {
      map->Fail(value.MakeError(ErrorCode::kInvalidValue, fmt::format("column '{}' stands twice", column->name)));
    }
    description.columns.push_back(std::move(*column));
  }
  if (columns.empty() && map->ok()) {
    map->Fail(map->value().MakeError(ErrorCode::kMissingField, "needs 'columns', a list of {name, kind, ...}"));
  }
  return description;
}

PolicyBook CsvPolicies(const CsvDescription& description) {
  PolicyBook policies;
  for (const CsvColumn& column : description.columns) {
    if (column.kind != ColumnKind::kIgnored) policies.Add(column.name);
  }
  return policies;
}

bool SplitCsvLine(std::string_view line, char separator, std::string* unquoted, std::vector<std::string_view>* fields) {
  fields->clear();
  unquoted->clear();
  unquoted->reserve(line.size());  // views into it stay: it never grows beyond the line
  size_t at = 0;
  while (true) {
    if (at < line.size() && line[at] == '"') {
      const size_t begin = unquoted->size();
      for (++at;; ++at) {
        const size_t quote = line.find('"', at);
        if (quote == std::string_view::npos) return false;
        unquoted->append(line.substr(at, quote - at));
        at = quote + 1;
        if (at == line.size() || line[at] != '"') break;
        *unquoted += '"';
      }
      if (at < line.size() && line[at] != separator) return false;
      fields->emplace_back(unquoted->data() + begin, unquoted->size() - begin);
    } else {
      const size_t end = std::min(line.find(separator, at), line.size());
      fields->push_back(line.substr(at, end - at));
      at = end;
    }
    if (at == line.size()) return true;
    ++at;  // the separator
  }
}

}  // namespace portolan
