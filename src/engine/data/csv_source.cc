#include "engine/data/csv_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "engine/data/shown_field.h"

namespace portolan {
namespace {

// A described column and where its values go.
struct Target {
  CsvColumn column;
  int policy = 0;    // its column in the PolicyBook
  int64_t to = 0;    // index among the dense values or the model's features
  int64_t from = 0;  // field of the line
};

// A number of the whole text; NaN and infinities are none.
bool ParseFinite(std::string_view text, double* value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return status == std::errc() && stop == text.data() + text.size() && std::isfinite(*value);
}

class CsvSource : public SampleSource {
 public:
  CsvSource(LineSource lines, SourcePosition start, CsvDescription::Header header, char separator, PolicyBook policies)
      : SampleSource(std::move(policies)),
        lines_(std::move(lines)),
        start_(start),
        header_(header),
        separator_(separator) {}

  // Sorts the columns into places; the error of a schema that the description does not fill.
  Status Describe(const CsvDescription& description, const BatchSchema& schema) {
    int64_t dense = 0;
    int policy = PolicyBook::kLine;
    std::vector<int> given(schema.features.size(), 0);
    std::vector<std::string> names;
    for (const BatchSchema::Feature& feature : schema.features) names.push_back(feature.name);
    for (size_t i = 0; i < description.columns.size(); ++i) {
      const CsvColumn& column = description.columns[i];
      if (column.kind == ColumnKind::kIgnored) continue;
      Target target{column, ++policy, 0, static_cast<int64_t>(i)};
      if (column.kind == ColumnKind::kLabel) labels_.push_back(target);
      if (column.kind == ColumnKind::kDense) {
        target.to = dense++;
        dense_.push_back(target);
      }
      if (column.kind == ColumnKind::kCategorical || column.kind == ColumnKind::kMultiHot) {
        const auto found = std::find(names.begin(), names.end(), column.feature);
        if (found == names.end()) {
          return MakeError(
              ErrorCode::kInvalidValue,
              fmt::format("column '{}' fills '{}', which is no feature of the model; there are: {}{}", column.name,
                          column.feature, Join(names, ", "), DidYouMean(column.feature, names)));
        }
        target.to = found - names.begin();
        if (++given[target.to] > 1) {
          return MakeError(ErrorCode::kInvalidValue, fmt::format("two columns fill feature '{}'", *found));
        }
        features_.push_back(target);
        if (column.kind == ColumnKind::kMultiHot) bags_ = Bags::kVariable;
      }
    }
    for (size_t f = 0; f < names.size(); ++f) {
      if (given[f] == 0)
        return MakeError(ErrorCode::kInvalidValue, fmt::format("no column fills feature '{}'", names[f]));
    }
    std::sort(features_.begin(), features_.end(), [](const Target& a, const Target& b) { return a.to < b.to; });
    for (const BatchSchema::Feature& feature : schema.features) ids_.emplace_back(IdRule::kExact, feature.rows);
    for (const Target& target : features_) ids_[target.to] = {target.column.ids, schema.features[target.to].rows};
    if (labels_.size() != 1) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("{} columns of kind label; there must be one", labels_.size()));
    }
    if (dense != schema.dense_width) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("{} columns of kind dense, the model takes {}", dense, schema.dense_width));
    }
    fields_wanted_ = std::ssize(description.columns);
    return {};
  }

  Bags bags() const override { return bags_; }
  SourcePosition Position() const override { return {lines_.part(), lines_.offset()}; }
  SourcePosition Start() const override { return start_; }
  Status Seek(SourcePosition position) override {
    header_part_ = -1;
    return lines_.Seek(position.part, position.offset);
  }

  Status Read(int64_t count, SampleRows* rows) override {
    const int64_t end = rows->size + count;
    while (rows->size < end) {
      std::string_view line;
      PORTOLAN_ASSIGN_OR_RETURN(bool more, lines_.Peek(&line));
      if (!more) break;
      if (header_ == CsvDescription::Header::kPresent && header_part_ != lines_.part()) {
        PORTOLAN_RETURN_IF_ERROR(ReadHeader());
        if (lines_.AtStartOfFile()) lines_.Pass();
        continue;
      }
      rows->Reserve(1);
      const size_t ids_before = rows->ids.size();
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, ParseLine(line, rows));
      Settle(outcome, ids_before, rows);
      lines_.Pass();
    }
    return {};
  }

 private:
  // Finds the columns in the first line of the file, wherever in it the source stands.
  Status ReadHeader() {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string text, lines_.FirstLineOfFile());
    std::vector<std::string_view> names;
    if (!SplitCsvLine(text, separator_, &unquoted_, &names)) {
      return lines_.ErrorAtStartOfFile("the header has a quote without an end");
    }
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (!names.empty() && names[0].starts_with(kByteOrderMark)) names[0].remove_prefix(kByteOrderMark.size());
    for (std::vector<Target>* targets : {&labels_, &dense_, &features_}) {
      for (Target& target : *targets) {
        const auto found = std::find(names.begin(), names.end(), target.column.name);
        if (found == names.end() || std::find(found + 1, names.end(), target.column.name) != names.end()) {
          std::vector<std::string> shown;
          for (size_t i = 0; i < std::min<size_t>(names.size(), 60); ++i) shown.push_back(ShownField(names[i]));
          return lines_.ErrorAtStartOfFile(fmt::format("the header has {} column '{}'; there are: {}{}",
                                                       found == names.end() ? "no" : "twice the", target.column.name,
                                                       Join(shown, ", "), DidYouMean(target.column.name, shown)));
        }
        target.from = found - names.begin();
      }
    }
    fields_wanted_ = std::ssize(names);
    header_part_ = lines_.part();
    return {};
  }

  Result<RowOutcome> Judge(int column, FieldProblem problem, std::string_view field, const std::string& accepted) {
    if (const std::optional<RowOutcome> judged = policies_.Judge(column, problem)) return *judged;
    return lines_.ErrorAt(0, ErrorCode::kParse, policies_.Name(column), ProblemText(problem, field, accepted));
  }

  Result<RowOutcome> ParseLine(std::string_view line, SampleRows* rows) {
    const bool cut = lines_.overlong();
    const bool split = SplitCsvLine(line, separator_, &unquoted_, &fields_);
    if (cut || !split || std::ssize(fields_) != fields_wanted_) {
      // The beginning of a line, or fields that nobody can tell apart, are no sample.
      PolicyAction action = policies_.Action(PolicyBook::kLine, FieldProblem::kBadLine);
      if ((cut || !split) && action == PolicyAction::kClamp) action = PolicyAction::kError;
      if (action != PolicyAction::kError) policies_.Meet(PolicyBook::kLine, FieldProblem::kBadLine);
      if (action == PolicyAction::kSkip) return RowOutcome::kSkipped;
      if (action == PolicyAction::kError) {
        return lines_.ErrorAt(0, ErrorCode::kParse, "",
                              cut      ? fmt::format("the line has more than {} bytes", LineSource::kMaxLineBytes)
                              : !split ? "a quote without an end, or text after one"
                                       : fmt::format("the line has {} fields, not {}", fields_.size(), fields_wanted_));
      }
      fields_.resize(fields_wanted_);
    }
    PORTOLAN_ASSIGN_OR_RETURN(RowOutcome outcome, ParseLabel(labels_[0], rows));
    for (size_t i = 0; outcome == RowOutcome::kKept && i < dense_.size(); ++i) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseDense(dense_[i], rows));
    }
    for (size_t i = 0; outcome == RowOutcome::kKept && i < features_.size(); ++i) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseFeature(features_[i], rows));
    }
    return outcome;
  }

  Result<RowOutcome> ParseLabel(const Target& target, SampleRows* rows) {
    const std::string_view field = fields_[target.from];
    float& label = rows->labels[rows->size];
    label = 0;
    const char* accepted = target.column.has_threshold ? "a number" : "a number from 0 to 1";
    if (field.empty()) return Judge(target.policy, FieldProblem::kMissing, field, accepted);
    double value = 0;
    if (!ParseFinite(field, &value)) return Judge(target.policy, FieldProblem::kBadValue, field, accepted);
    if (target.column.has_threshold) {
      label = value >= target.column.threshold ? 1.0F : 0.0F;
      return RowOutcome::kKept;
    }
    label = static_cast<float>(std::clamp(value, 0.0, 1.0));
    if (value < 0 || value > 1) return Judge(target.policy, FieldProblem::kOutOfRange, field, accepted);
    return RowOutcome::kKept;
  }

  Result<RowOutcome> ParseDense(const Target& target, SampleRows* rows) {
    const std::string_view field = fields_[target.from];
    const DenseTransform transform = target.column.transform;
    float& to = rows->dense[rows->size * rows->dense_width + target.to];
    to = Transformed(transform, 0);
    if (field.empty()) return Judge(target.policy, FieldProblem::kMissing, field, "a number");
    double value = 0;
    if (!ParseFinite(field, &value) || !std::isfinite(static_cast<float>(value))) {
      return Judge(target.policy, FieldProblem::kBadValue, field, "a finite number of float32");
    }
    if (value < 0 && transform == DenseTransform::kLog1p) {
      return Judge(target.policy, FieldProblem::kNegative, field, "at least 0 for log(x + 1)");
    }
    to = Transformed(transform, static_cast<float>(value));
    return RowOutcome::kKept;
  }

  Result<RowOutcome> ParseFeature(const Target& target, SampleRows* rows) {
    std::string_view field = fields_[target.from];
    RowOutcome outcome = RowOutcome::kKept;
    if (target.column.kind == ColumnKind::kCategorical) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseId(target, field, rows));
    } else {
      while (!field.empty() && outcome == RowOutcome::kKept) {
        const size_t end = std::min(field.find(target.column.separator), field.size());
        PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseId(target, field.substr(0, end), rows));
        if (end + 1 == field.size() && outcome == RowOutcome::kKept) {  // an id is missing after the last separator
          PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseId(target, {}, rows));
        }
        field.remove_prefix(std::min(end + 1, field.size()));
      }
    }
    if (bags_ == Bags::kVariable) rows->ends[rows->size * rows->features + target.to] = std::ssize(rows->ids);
    return outcome;
  }

  Result<RowOutcome> ParseId(const Target& target, std::string_view field, SampleRows* rows) {
    int64_t id = 0;
    RowOutcome outcome = RowOutcome::kKept;
    const IdMap& ids = ids_[target.to];
    if (field.empty()) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome, Judge(target.policy, FieldProblem::kMissing, field, "an id"));
    } else if (target.column.ids == IdRule::kHash) {
      id = ids.FromBits(HashBytes(field.data(), field.size()));
    } else {
      const int base = target.column.digits == CsvColumn::Digits::kHexadecimal ? 16 : 10;
      int64_t number = 0;
      const auto [stop, status] = std::from_chars(field.data(), field.data() + field.size(), number, base);
      if (status != std::errc() || stop != field.data() + field.size()) {
        PORTOLAN_ASSIGN_OR_RETURN(outcome, Judge(target.policy, FieldProblem::kBadValue, field,
                                                 base == 16 ? "a hexadecimal number of 63 bits" : "a whole number"));
      } else if (!ids.Map(number, &id)) {
        id = number < 0 ? 0 : ids.rows() - 1;
        PORTOLAN_ASSIGN_OR_RETURN(
            outcome, Judge(target.policy, number < 0 ? FieldProblem::kNegative : FieldProblem::kOutOfRange, field,
                           fmt::format("0 to {} (rows - 1)", ids.rows() - 1)));
      }
    }
    if (bags_ == Bags::kOneEach) {
      rows->ids[rows->size * rows->features + target.to] = id;
    } else {
      rows->ids.push_back(id);
    }
    return outcome;
  }

  LineSource lines_;
  SourcePosition start_;
  CsvDescription::Header header_;
  char separator_;
  std::vector<Target> labels_, dense_, features_;  // features_ in the model's order
  std::vector<IdMap> ids_;
  Bags bags_ = Bags::kOneEach;
  int64_t fields_wanted_ = 0;
  int64_t header_part_ = -1;  // the file whose header was read last
  std::string unquoted_;
  std::vector<std::string_view> fields_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> OpenCsv(std::vector<FilePart> parts, const CsvDescription& description,
                                              const BatchSchema& schema, PolicyBook policies) {
  const SourcePosition start{0, parts.empty() ? 0 : parts[0].begin};
  PORTOLAN_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(std::move(parts)));
  auto source = std::make_unique<CsvSource>(std::move(lines), start, description.header, description.separator,
                                            std::move(policies));
  PORTOLAN_RETURN_IF_ERROR(source->Describe(description, schema));
  return source;
}

}  // namespace portolan
