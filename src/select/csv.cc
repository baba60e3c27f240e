#include "select/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"

namespace portolan {
namespace {

// Fields of one record; a quoted field may not span lines.
std::optional<std::vector<std::string>> SplitRecord(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += c;
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

tl::unexpected<Error> At(const std::string& path, int line, const std::string& field, ErrorCode code,
                         std::string message) {
  return tl::make_unexpected(Error{code, std::move(message), path, line, field});
}

}  // namespace

Result<CsvTable> CsvTable::Load(const std::string& path) {
  std::ifstream in(path);
  if (!in) return At(path, 0, "", ErrorCode::kNotFound, "cannot open the file");
  CsvTable table;
  table.path = path;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number == 1 && line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);
    if (line.empty()) continue;
    auto fields = SplitRecord(line);
    if (!fields) return At(path, number, "", ErrorCode::kParse, "a quoted field that does not end on its line");
    if (table.columns.empty()) {
      std::set<std::string> seen;
      for (const std::string& name : *fields) {
        if (!seen.insert(name).second) return At(path, number, name, ErrorCode::kParse, "this column stands twice");
      }
      table.columns = std::move(*fields);
      continue;
    }
    if (fields->size() != table.columns.size()) {
      return At(path, number, "", ErrorCode::kParse,
                fmt::format("{} fields, the header has {}", fields->size(), table.columns.size()));
    }
    table.rows.push_back(std::move(*fields));
    table.lines.push_back(number);
  }
  if (in.bad()) return At(path, 0, "", ErrorCode::kIo, "reading failed");
  if (table.columns.empty()) return At(path, 0, "", ErrorCode::kParse, "the file is empty; a header line is required");
  return table;
}

int CsvTable::Column(const std::string& name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == name) return static_cast<int>(i);
  }
  return -1;
}

CsvRow::CsvRow(const CsvTable& table, size_t row, std::map<std::string, int>* used)
    : table_(table), row_(row), used_(used) {}

const std::string* CsvRow::Field(const std::string& column) {
  const auto [place, added] = used_->try_emplace(column, -1);
  if (added) place->second = table_.Column(column);
  if (place->second < 0) return nullptr;
  const std::string& text = table_.rows[row_][static_cast<size_t>(place->second)];
  return text.empty() ? nullptr : &text;
}

bool CsvRow::Has(const std::string& column) { return Field(column) != nullptr; }

std::string CsvRow::Text(const std::string& column, const std::string& fallback) {
  const std::string* text = Field(column);
  return text != nullptr ? *text : fallback;
}

int64_t CsvRow::Integer(const std::string& column, IntegerBounds bounds, std::optional<int64_t> fallback) {
  const std::string* text = Field(column);
  if (text == nullptr) {
    if (!fallback) Fail(column, "required, but missing or empty");
    return fallback.value_or(bounds.min);
  }
  // Tables that went through a spreadsheet or pandas hold "8.0".
  double value = 0.0;
  if (!ParseDouble(*text, &value) || !(std::fabs(value) < 9e15) || value != std::floor(value)) {
    Fail(column, fmt::format("'{}' is not a whole number", *text));
    return bounds.min;
  }
  const auto whole = static_cast<int64_t>(value);
  if (whole < bounds.min || whole > bounds.max) {
    Fail(column, fmt::format("{} is outside {} to {}", whole, bounds.min, bounds.max));
    return bounds.min;
  }
  return whole;
}

double CsvRow::Number(const std::string& column, double fallback) {
  const std::string* text = Field(column);
  if (text == nullptr) return fallback;
  double value = 0.0;
  if (!ParseDouble(*text, &value) || !std::isfinite(value)) {
    Fail(column, fmt::format("'{}' is not a number", *text));
    return fallback;
  }
  return value;
}

void CsvRow::Fail(const std::string& column, const std::string& message) {
  if (!error_) error_ = Error{ErrorCode::kInvalidValue, message, table_.path, table_.lines[row_], column};
}

Status CsvRow::Finish() const {
  if (error_) return tl::make_unexpected(*error_);
  return {};
}

}  // namespace portolan
