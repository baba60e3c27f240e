#include "engine/data/criteo_tsv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/data/shown_field.h"
#include "engine/data/text_fields.h"

namespace portolan {
namespace {

constexpr int64_t kFields = 1 + kCriteoDense + kCriteoCategories;
// log(x + 1) of smaller x is looked up: nine tenths of Criteo's counts; the table stays in the first-level cache.
constexpr uint32_t kTabulatedLogs = 2048;
constexpr int64_t kReservedSamples = 1024;

int DenseColumn(int64_t i) { return static_cast<int>(2 + i); }
int CategoryColumn(int64_t i) { return static_cast<int>(2 + kCriteoDense + i); }
constexpr int kLabelColumn = 1;

class CriteoTsv : public SampleSource {
 public:
  CriteoTsv(LineSource lines, const CriteoOptions& options, const BatchSchema& schema, PolicyBook policies)
      : SampleSource(std::move(policies)), lines_(std::move(lines)), options_(options) {
    for (const BatchSchema::Feature& feature : schema.features) ids_.emplace_back(options.ids, feature.rows);
    for (uint32_t x = 0; x < kTabulatedLogs; ++x) logs_[x] = Transformed(options.transform, static_cast<float>(x));
    usual_ = options.ids == IdRule::kModulo && options.transform == DenseTransform::kLog1p;
    for (int64_t i = 0; i < kCriteoDense; ++i) usual_ &= Clamps(DenseColumn(i), FieldProblem::kNegative);
    for (int i = 0; i < kCriteoDense + kCriteoCategories; ++i) {
      usual_ &= Clamps(DenseColumn(i), FieldProblem::kMissing);
    }
    for (const IdMap& map : ids_) usual_ &= map.rows() <= std::numeric_limits<uint32_t>::max();
  }

  Bags bags() const override { return Bags::kOneEach; }
  SourcePosition Position() const override { return {lines_.part(), lines_.offset()}; }
  SourcePosition Start() const override { return {0, options_.parts.empty() ? 0 : options_.parts[0].begin}; }
  Status Seek(SourcePosition position) override { return lines_.Seek(position.part, position.offset); }

  Status Read(int64_t count, SampleRows* rows) override {
    const int64_t end = rows->size + count;
    while (rows->size < end) {
      PORTOLAN_ASSIGN_OR_RETURN(const std::string_view text, lines_.Lines());
      if (text.empty()) break;
      Result<int64_t> parsed = ParseLines(text, end, rows);
      for (int i = 0; i < kCriteoDense + kCriteoCategories; ++i) {
        policies_.CountClamped(DenseColumn(i), FieldProblem::kMissing, std::exchange(missing_[i], 0));
        policies_.CountClamped(DenseColumn(i), FieldProblem::kNegative, std::exchange(negative_[i], 0));
      }
      if (!parsed) return tl::make_unexpected(std::move(parsed).error());
      lines_.Advance(*parsed);
    }
    return {};
  }

 private:
  // The fields of a line: field i is the bytes from ends[i - 1] + 1 (or the start of the line) to ends[i].
  using Ends = std::array<const char*, kFields>;

  // Parses until `rows` holds `end` samples or `text` is used up; returns the bytes used.
  Result<int64_t> ParseLines(std::string_view text, int64_t end, SampleRows* rows) {
    const char* at = text.data();
    const char* const text_end = at + text.size();
    TabScanner scanner(at);
    Ends ends;
    while (at != text_end && rows->size < end) {
      if (std::ssize(rows->labels) <= rows->size) rows->Reserve(std::min(kReservedSamples, end - rows->size));
      bool whole = !lines_.overlong();
      for (int64_t field = 0; field < kFields; ++field) {
        ends[field] = scanner.Next();
        if (*ends[field] == '\n' && field + 1 < kFields) {
          whole = false;
          break;
        }
      }
      whole = whole && *ends[kFields - 1] == '\n';
      const char* next = nullptr;
      if (whole) {
        next = ends[kFields - 1] + 1;
        if (ends[kFields - 1][-1] == '\r') --ends[kFields - 1];
      }
      if (whole && usual_ && ParseUsual(at, ends, rows)) {
        ++rows->size;
        policies_.CountSample();
        at = next;
        continue;
      }
      Result<RowOutcome> outcome = RowOutcome::kKept;
      if (whole) {
        outcome = ParseRow(at, ends, at - text.data(), rows);
      } else {
        next = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(text_end - at))) + 1;
        outcome = ParseUneven(std::string_view(at, static_cast<size_t>(next - 1 - at)), at - text.data(), rows);
        scanner = TabScanner(next);
      }
      if (!outcome) return tl::make_unexpected(std::move(outcome).error());
      Settle(*outcome, rows->ids.size(), rows);
      at = next;
    }
    return at - text.data();
  }

  // A line that has not 40 fields.
  Result<RowOutcome> ParseUneven(std::string_view line, int64_t ahead, SampleRows* rows) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::string copy(LineSource::kPadding, ' ');
    int64_t fields = 1;
    for (const char c : line) fields += c == '\t';
    const std::string what =
        lines_.overlong() ? fmt::format("the line has more than {} bytes", LineSource::kMaxLineBytes)
        : fields == kFields - 1
            ? fmt::format("the line has {} of {} fields (Criteo's test files have no label and cannot be read)", fields,
                          kFields)
            : fmt::format("the line has {} fields, not {} (label, I1 to I13, C1 to C26; TAB-separated)", fields,
                          kFields);
    // The beginning of an overlong line is no sample: its last field is cut.
    const bool cut =
        lines_.overlong() && policies_.Action(PolicyBook::kLine, FieldProblem::kBadLine) == PolicyAction::kClamp;
    switch (cut ? PolicyAction::kError : policies_.Meet(PolicyBook::kLine, FieldProblem::kBadLine)) {
      case PolicyAction::kError:
        return lines_.ErrorAt(ahead, ErrorCode::kParse, "", what);
      case PolicyAction::kSkip:
        return RowOutcome::kSkipped;
      case PolicyAction::kClamp:
        break;
    }
    copy += line;
    copy.append(static_cast<size_t>(std::max<int64_t>(0, kFields - fields)), '\t');
    copy.append(LineSource::kPadding, '\n');
    const char* const begin = copy.data() + LineSource::kPadding;
    TabScanner scanner(begin);
    Ends ends;
    for (const char*& end : ends) end = scanner.Next();
    return ParseRow(begin, ends, ahead, rows);
  }

  bool Clamps(int column, FieldProblem problem) const {
    return policies_.Action(column, problem) == PolicyAction::kClamp;
  }

  // Writes the row after the last of `rows` when it holds nothing that needs a decision, which is nearly always: one
  // label, numbers of up to 8 digits, categories of 8, missing fields and negative counts where these are clamped.
  // Otherwise returns false and counts nothing. Few branches: the lengths of the fields are as good as random.
  bool ParseUsual(const char* begin, const Ends& ends, SampleRows* rows) {
    float* const dense = rows->dense.data() + rows->size * kCriteoDense;
    int64_t* const ids = rows->ids.data() + rows->size * kCriteoCategories;
    bool usual = ends[0] - begin == 1 && (*begin == '0' || *begin == '1');
    rows->labels[rows->size] = static_cast<float>(*begin - '0');
    uint64_t missing = 0, negative = 0;  // a bit a column
    const char* field = ends[0] + 1;
    for (int64_t i = 0; i < kCriteoDense; ++i) {
      const char* const end = ends[1 + i];
      const bool minus = *field == '-';
      const int64_t length = end - field - static_cast<int64_t>(minus);
      missing |= static_cast<uint64_t>(end == field) << i;
      negative |= static_cast<uint64_t>(minus) << i;
      if (length > 8) return false;
      uint32_t x = 0;
      usual &= ParseDigits(end, length, &x);
      usual &= !minus || x != 0;  // "-" and "-0" are for ParseDense
      x = minus ? 0 : x;
      dense[i] = x < kTabulatedLogs ? logs_[x] : Transformed(DenseTransform::kLog1p, static_cast<float>(x));
      field = end + 1;
    }
    for (int64_t i = 0; i < kCriteoCategories; ++i) {
      const char* const end = ends[1 + kCriteoDense + i];
      const uint64_t empty = end == field;
      missing |= empty << (kCriteoDense + i);
      uint32_t category = 0;
      const bool digits = ParseHex8(field, &category);
      usual &= (digits & (end - field == 8)) | (empty != 0);
      category &= static_cast<uint32_t>(empty) - 1;  // no bit of it when empty
      ids[i] = ids_[i].Modulo32(category);
      field = end + 1;
    }
    if (!usual) return false;
    for (; missing != 0; missing &= missing - 1) ++missing_[std::countr_zero(missing)];
    for (; negative != 0; negative &= negative - 1) ++negative_[std::countr_zero(negative)];
    return true;
  }

  // Writes the row after the last of `rows`, field by field; `ahead` is the line's place, for messages.
  Result<RowOutcome> ParseRow(const char* begin, const Ends& ends, int64_t ahead, SampleRows* rows) {
    const auto field = [&](int64_t i) {
      const char* const start = i == 0 ? begin : ends[i - 1] + 1;
      return std::string_view(start, static_cast<size_t>(ends[i] - start));
    };
    PORTOLAN_ASSIGN_OR_RETURN(RowOutcome outcome, ParseLabel(field(0), ahead, &rows->labels[rows->size]));
    for (int64_t i = 0; outcome == RowOutcome::kKept && i < kCriteoDense; ++i) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome,
                                ParseDense(field(1 + i), i, ahead, &rows->dense[rows->size * kCriteoDense + i]));
    }
    for (int64_t i = 0; outcome == RowOutcome::kKept && i < kCriteoCategories; ++i) {
      PORTOLAN_ASSIGN_OR_RETURN(outcome, ParseCategory(field(1 + kCriteoDense + i), i, ahead,
                                                       &rows->ids[rows->size * kCriteoCategories + i]));
    }
    return outcome;
  }

  // What the policy says about a field; kKept: the caller uses the nearest value.
  Result<RowOutcome> Judge(int column, FieldProblem problem, std::string_view field, int64_t ahead,
                           const std::string& accepted) {
    if (const std::optional<RowOutcome> judged = policies_.Judge(column, problem)) return *judged;
    return lines_.ErrorAt(ahead, ErrorCode::kParse, policies_.Name(column), ProblemText(problem, field, accepted));
  }

  Result<RowOutcome> ParseLabel(std::string_view field, int64_t ahead, float* label) {
    *label = field == "1" ? 1.0F : 0.0F;
    if (field == "0" || field == "1") return RowOutcome::kKept;
    const FieldProblem problem = field.empty() ? FieldProblem::kMissing : FieldProblem::kBadValue;
    return Judge(kLabelColumn, problem, field, ahead, "0 or 1");
  }

  Result<RowOutcome> ParseDense(std::string_view field, int64_t i, int64_t ahead, float* value) {
    const int column = DenseColumn(i);
    const char* kAccepted = "a whole number of 64 bits";
    *value = Transformed(options_.transform, 0.0F);
    if (field.empty()) return Judge(column, FieldProblem::kMissing, field, ahead, kAccepted);
    int64_t number = 0;
    const auto [stop, status] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (status != std::errc() || stop != field.data() + field.size()) {
      return Judge(column, FieldProblem::kBadValue, field, ahead, kAccepted);
    }
    if (number < 0 && options_.transform == DenseTransform::kLog1p) {
      return Judge(column, FieldProblem::kNegative, field, ahead, "at least 0 for log(x + 1)");
    }
    *value = Transformed(options_.transform, static_cast<float>(number));
    return RowOutcome::kKept;
  }

  Result<RowOutcome> ParseCategory(std::string_view field, int64_t i, int64_t ahead, int64_t* id) {
    const int column = CategoryColumn(i);
    const char* kAccepted = "1 to 8 hexadecimal digits";
    *id = 0;
    if (field.empty()) return Judge(column, FieldProblem::kMissing, field, ahead, kAccepted);
    uint32_t number = 0;
    const auto [stop, status] = std::from_chars(field.data(), field.data() + field.size(), number, 16);
    if (status != std::errc() || stop != field.data() + field.size() || field.size() > 8) {
      return Judge(column, FieldProblem::kBadValue, field, ahead, kAccepted);
    }
    if (ids_[i].Map(number, id)) return RowOutcome::kKept;
    *id = ids_[i].rows() - 1;
    return Judge(column, FieldProblem::kOutOfRange, field, ahead, fmt::format("below {:x} (rows)", ids_[i].rows()));
  }

  LineSource lines_;
  CriteoOptions options_;
  std::vector<IdMap> ids_;
  std::array<float, kTabulatedLogs> logs_{};
  // Clamped fields that policies_ does not count yet.
  std::array<int64_t, kCriteoDense + kCriteoCategories> missing_{}, negative_{};
  bool usual_ = false;  // the options and policies that ParseUsual is written for
};

}  // namespace

PolicyBook CriteoPolicies() {
  PolicyBook policies;
  policies.Add("label");
  ColumnPolicy policy;
  policy.Set(FieldProblem::kMissing, PolicyAction::kClamp);
  policy.Set(FieldProblem::kNegative, PolicyAction::kClamp);
  for (int64_t i = 1; i <= kCriteoDense; ++i) policies.Add(fmt::format("I{}", i), policy);
  for (int64_t i = 1; i <= kCriteoCategories; ++i) policies.Add(fmt::format("C{}", i), policy);
  return policies;
}

Result<std::unique_ptr<SampleSource>> OpenCriteoTsv(const CriteoOptions& options, const BatchSchema& schema,
                                                    PolicyBook policies) {
  if (schema.dense_width != kCriteoDense || std::ssize(schema.features) != kCriteoCategories) {
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("Criteo's files have {} dense values and {} categorical ones, the model takes {} and {}; "
                    "describe the columns with format: csv and separator: \"\\t\" to read a part of them",
                    kCriteoDense, kCriteoCategories, schema.dense_width, schema.features.size()));
  }
  PORTOLAN_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(options.parts));
  return std::make_unique<CriteoTsv>(std::move(lines), options, schema, std::move(policies));
}

}  // namespace portolan
