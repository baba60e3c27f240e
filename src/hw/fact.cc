#include "hw/fact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"

namespace portolan {
namespace {

struct KindRow {
  FactKind kind;
  const char* name;
};
constexpr std::array kKinds = {
    KindRow{FactKind::kDatasheet, "datasheet"},
    KindRow{FactKind::kMeasured, "measured"},
    KindRow{FactKind::kDerived, "derived"},
    KindRow{FactKind::kAssumed, "assumed"},
};

bool IsBlank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; });
}

// yyyy-mm-dd with a month of 1 to 12 and a day of 1 to 31.
bool IsIsoDate(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (text[i] < '0' || text[i] > '9') return false;
  }
  const int month = (text[5] - '0') * 10 + text[6] - '0';
  const int day = (text[8] - '0') * 10 + text[9] - '0';
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

}  // namespace

const char* FactKindName(FactKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  PORTOLAN_CHECK(false, "fact kind without a row");
}

Result<Fact> ReadFact(const YamlValue& value, Range range) {
  if (!value.IsMap()) {
    return value.MakeError(ErrorCode::kMissingField,
                           "got " + value.Shown() +
                               "; a hardware value needs its source: {value: NUMBER, kind: datasheet | measured | "
                               "derived | assumed, source: \"...\", date: yyyy-mm-dd}");
  }
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  Fact fact;
  fact.value = map.Number("value", range);
  std::vector<std::string> kinds;
  for (const KindRow& row : kKinds) kinds.emplace_back(row.name);
  const std::string kind = map.OneOf("kind", kinds);
  for (const KindRow& row : kKinds) {
    if (kind == row.name) fact.kind = row.kind;
  }
  fact.source = map.String("source");
  map.Visit("source", [&](const YamlValue& source) -> Status {
    if (!IsBlank(fact.source)) return {};
    return source.MakeError(ErrorCode::kMissingField, "must say where the value comes from, got " + source.Shown());
  });
  fact.date = map.String("date", "");
  map.Visit("date", [&](const YamlValue& date) -> Status {
    if (IsIsoDate(fact.date)) return {};
    return date.MakeError(ErrorCode::kInvalidValue, "must be a date yyyy-mm-dd, got " + date.Shown());
  });
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return fact;
}

}  // namespace portolan
