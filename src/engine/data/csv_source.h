#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "engine/batch.h"
#include "engine/data/line_source.h"
#include "engine/data/sample_source.h"
#include "engine/data/value_map.h"

namespace portolan {

// What a column of a CSV file is.
enum class ColumnKind {
  kLabel,        // one column: a number in [0, 1], or with a threshold any number (>= threshold: 1, else 0)
  kDense,        // a number; the dense values of a sample stand in the order of the description
  kCategorical,  // one id
  kMultiHot,     // any number of ids between separators; an empty field is an empty bag
  kIgnored,
};

struct CsvColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kIgnored;
  DenseTransform transform = DenseTransform::kNone;
  IdRule ids = IdRule::kExact;
  enum class Digits { kDecimal, kHexadecimal } digits = Digits::kDecimal;  // kHash takes the text as it is
  std::string feature;                                                     // of the model
  char separator = '|';                                                    // kMultiHot
  bool has_threshold = false;                                              // kLabel
  double threshold = 0;
};

// How the lines of a text table are cut, and what its columns mean.
struct CsvDescription {
  enum class Header { kPresent, kAbsent } header = Header::kPresent;
  char separator = ',';
  std::vector<CsvColumn> columns;  // without a header: every column of the file, in order

  // Reads the keys header, separator, columns of `map`; docs/data.md names them. Errors are kept in `map`.
  static CsvDescription Read(YamlMap* map, const BatchSchema& schema);
};

// Columns by name, ignored ones left out.
PolicyBook CsvPolicies(const CsvDescription& description);

// Fields between separators; one that begins with '"' ends at the next single '"' and may hold separators and '""' for
// '"' (RFC 4180), but no end of line. LF or CRLF. With a header the file's columns may stand in any order, and those
// that nobody describes are passed over. Errors: files; a header without a described column; a schema whose dense width
// or features the description does not give.
Result<std::unique_ptr<SampleSource>> OpenCsv(std::vector<FilePart> parts, const CsvDescription& description,
                                              const BatchSchema& schema, PolicyBook policies);

// Cuts a line into fields, quotes resolved into `unquoted`. Returns false for a quote without an end or text after one.
bool SplitCsvLine(std::string_view line, char separator, std::string* unquoted, std::vector<std::string_view>* fields);

}  // namespace portolan
