#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace portolan {

// Inclusive bounds of an integer column.
struct IntegerBounds {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// A comma-separated file with a header line; fields may be quoted ("a,""b"). Lines that are empty are skipped.
struct CsvTable {
  std::string path;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many fields as columns
  std::vector<int> lines;                      // 1-based line of each row

  // Errors: a file that cannot be read, no header, a column twice, a row with another number of fields than the header.
  static Result<CsvTable> Load(const std::string& path);
  int Column(const std::string& name) const;  // -1 when absent
};

// Reads one row column by column and keeps the first error. An absent column or an empty field is the fallback; without
// one it is an error. Remembers which columns somebody asked for.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, size_t row, std::map<std::string, int>* used);

  bool Has(const std::string& column);  // the column exists and the field is not empty
  std::string Text(const std::string& column, const std::string& fallback);
  int64_t Integer(const std::string& column, IntegerBounds bounds, std::optional<int64_t> fallback = std::nullopt);
  double Number(const std::string& column, double fallback);
  void Fail(const std::string& column, const std::string& message);
  Status Finish() const;

 private:
  const std::string* Field(const std::string& column);

  const CsvTable& table_;
  size_t row_;
  std::map<std::string, int>* used_;
  std::optional<Error> error_;
};

}  // namespace portolan
