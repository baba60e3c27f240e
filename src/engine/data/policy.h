#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"

namespace portolan {

// What can be wrong with a field, or with a whole line.
enum class FieldProblem {
  kMissing,     // the field is empty
  kNegative,    // below zero where the transform needs x >= 0
  kBadValue,    // not a number (also NaN and infinities), not hexadecimal, not a known key
  kOutOfRange,  // an id outside [0, rows), a label outside [0, 1]
  kBadLine,     // too few or too many fields, a quote without an end, more bytes than a line may have
};
constexpr int kFieldProblems = 5;

// What happens then; every case but the error is counted.
enum class PolicyAction {
  kError,  // reading ends with file, line and column
  kClamp,  // the nearest accepted value: 0 for missing, negative and bad values, the bound for what lies outside,
           // missing fields for a short line; a long line loses its surplus
  kSkip,   // the sample is left out
};

const char* FieldProblemName(FieldProblem problem);  // as the keys of `policy:`, for example bad_value

struct ColumnPolicy {
  std::array<PolicyAction, kFieldProblems> on{};  // by FieldProblem; kError unless said otherwise

  PolicyAction operator[](FieldProblem problem) const { return on[static_cast<size_t>(problem)]; }
  void Set(FieldProblem problem, PolicyAction action) { on[static_cast<size_t>(problem)] = action; }
};

// What a reader met since it was opened or restored. Nothing that a policy let pass is missing here.
struct ReadCounts {
  struct Column {
    std::string name;
    std::array<int64_t, kFieldProblems> clamped{};  // fields given another value
    std::array<int64_t, kFieldProblems> skipped{};  // samples left out because of this column
  };
  int64_t samples = 0;  // read and kept
  int64_t skipped = 0;  // read and left out
  std::vector<Column> columns;

  // Adds the counts of a reader of the same columns.
  void Add(const ReadCounts& other);
  // One line for each column and problem that occurred, "" when none did.
  std::string Report() const;
};

// What became of one sample.
enum class RowOutcome { kKept, kSkipped };

// The columns of a reader: names, policies and counts. Column kLine stands for the line as a whole.
class PolicyBook {
 public:
  static constexpr int kLine = 0;

  PolicyBook() : PolicyBook(ColumnPolicy{}) {}
  explicit PolicyBook(ColumnPolicy fallback);
  // Adds a column with the fallback's policy; returns its index.
  int Add(const std::string& name);
  int Add(const std::string& name, ColumnPolicy policy);
  // Reads `policy: {missing: clamp, ...}` for all columns and `column_policy: {NAME: {...}}` for single ones; a name
  // that is no column is refused with the list. `no_clamp` columns (labels) refuse clamp for missing and bad values:
  // there is no nearest label.
  void Read(YamlMap* map, const std::vector<int>& no_clamp);

  // Counts the problem and says what to do; kError is not counted.
  PolicyAction Meet(int column, FieldProblem problem) {
    const PolicyAction action = policies_[column][problem];
    if (action == PolicyAction::kClamp) ++counts_.columns[column].clamped[static_cast<size_t>(problem)];
    if (action == PolicyAction::kSkip) ++counts_.columns[column].skipped[static_cast<size_t>(problem)];
    return action;
  }
  // The same as what becomes of the sample: kKept with the nearest value, or kSkipped; none: reading ends with an
  // error.
  std::optional<RowOutcome> Judge(int column, FieldProblem problem) {
    switch (Meet(column, problem)) {
      case PolicyAction::kSkip:
        return RowOutcome::kSkipped;
      case PolicyAction::kClamp:
        return RowOutcome::kKept;
      case PolicyAction::kError:
        break;
    }
    return std::nullopt;
  }
  // Counts `times` clamped fields at once, for readers that collect them.
  void CountClamped(int column, FieldProblem problem, int64_t times) {
    counts_.columns[column].clamped[static_cast<size_t>(problem)] += times;
  }
  PolicyAction Action(int column, FieldProblem problem) const { return policies_[column][problem]; }
  const std::string& Name(int column) const { return counts_.columns[column].name; }
  void CountSample() { ++counts_.samples; }
  void CountSkipped() { ++counts_.skipped; }
  void ResetCounts();
  const ReadCounts& counts() const { return counts_; }

 private:
  ColumnPolicy fallback_;
  std::vector<ColumnPolicy> policies_;
  ReadCounts counts_;
};

}  // namespace portolan
