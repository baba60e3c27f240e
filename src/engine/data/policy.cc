#include "engine/data/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/yaml_enum.h"

namespace portolan {
namespace {

constexpr const char* kProblemNames[kFieldProblems] = {"missing", "negative", "bad_value", "out_of_range", "bad_line"};
constexpr NamedValue<PolicyAction> kActions[] = {
    {"error", PolicyAction::kError}, {"clamp", PolicyAction::kClamp}, {"skip", PolicyAction::kSkip}};

Result<ColumnPolicy> ReadPolicy(const YamlValue& value, ColumnPolicy policy) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  for (PolicyAction& action : policy.on)
    action = ReadEnum(map, kProblemNames[&action - policy.on.data()], kActions, action);
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return policy;
}

}  // namespace

const char* FieldProblemName(FieldProblem problem) { return kProblemNames[static_cast<size_t>(problem)]; }

void ReadCounts::Add(const ReadCounts& other) {
  samples += other.samples;
  skipped += other.skipped;
  if (columns.empty()) {
    columns = other.columns;
    return;
  }
  for (size_t i = 0; i < std::min(columns.size(), other.columns.size()); ++i) {
    for (size_t problem = 0; problem < kFieldProblems; ++problem) {
      columns[i].clamped[problem] += other.columns[i].clamped[problem];
      columns[i].skipped[problem] += other.columns[i].skipped[problem];
    }
  }
}

std::string ReadCounts::Report() const {
  std::string text;
  for (const Column& column : columns) {
    for (size_t problem = 0; problem < kFieldProblems; ++problem) {
      if (column.clamped[problem] > 0) {
        text += fmt::format("{}: {}: {} clamped\n", column.name, kProblemNames[problem], column.clamped[problem]);
      }
      if (column.skipped[problem] > 0) {
        text +=
            fmt::format("{}: {}: {} samples skipped\n", column.name, kProblemNames[problem], column.skipped[problem]);
      }
    }
  }
  return text;
}

PolicyBook::PolicyBook(ColumnPolicy fallback) : fallback_(fallback) { Add("line"); }

int PolicyBook::Add(const std::string& name) { return Add(name, fallback_); }

int PolicyBook::Add(const std::string& name, ColumnPolicy policy) {
  policies_.push_back(policy);
  counts_.columns.push_back({name, {}, {}});
  return static_cast<int>(policies_.size()) - 1;
}

void PolicyBook::ResetCounts() {
  counts_.samples = counts_.skipped = 0;
  for (ReadCounts::Column& column : counts_.columns) column.clamped = column.skipped = {};
}

void PolicyBook::Read(YamlMap* map, const std::vector<int>& no_clamp) {
  const auto is_label = [&](size_t column) {
    return std::find(no_clamp.begin(), no_clamp.end(), static_cast<int>(column)) != no_clamp.end();
  };
  constexpr FieldProblem kNoNearest[] = {FieldProblem::kMissing, FieldProblem::kBadValue};
  map->Visit("policy", [&](const YamlValue& value) -> Status {
    for (size_t column = 0; column < policies_.size(); ++column) {
      const ColumnPolicy before = policies_[column];
      PORTOLAN_ASSIGN_OR_RETURN(policies_[column], ReadPolicy(value, before));
      if (!is_label(column)) continue;
      for (const FieldProblem problem : kNoNearest) {  // a rule for all columns leaves labels as they are
        if (policies_[column][problem] == PolicyAction::kClamp) policies_[column].Set(problem, before[problem]);
      }
    }
    return {};
  });
  map->Visit("column_policy", [&](const YamlValue& value) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap columns, value.Map());
    for (const auto& [name, entry] : columns.Entries()) {
      std::vector<std::string> known;
      for (size_t i = kLine + 1; i < policies_.size(); ++i) known.push_back(counts_.columns[i].name);
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        return entry.MakeError(ErrorCode::kUnknownField, fmt::format("is no column of this data; there are: {}{}",
                                                                     Join(known, ", "), DidYouMean(name, known)));
      }
      const size_t column = static_cast<size_t>(found - known.begin()) + kLine + 1;
      PORTOLAN_ASSIGN_OR_RETURN(policies_[column], ReadPolicy(entry, policies_[column]));
      for (const FieldProblem problem : kNoNearest) {
        if (is_label(column) && policies_[column][problem] == PolicyAction::kClamp) {
          return entry.MakeError(
              ErrorCode::kInvalidValue,
              fmt::format("a label has no nearest value for '{}'; accepted: error, skip", FieldProblemName(problem)));
        }
      }
    }
    return columns.Finish();
  });
}

}  // namespace portolan
