#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace portolan {

// Inclusive bounds of a number. NaN and infinities are never inside.
struct Range {
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
};
constexpr Range kPositive{std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
constexpr Range kNonNegative{0.0, std::numeric_limits<double>::max()};

class YamlMap;
struct YamlNode;

// One value of a YAML document, with its place: file, line and dotted path. Cheap to copy. Every reader returns an
// Error that names file, line, field, value and what would be accepted; yaml-cpp's exceptions stop here.
class YamlValue {
 public:
  // Reads and parses a file of at most 16 MiB, 64 levels and 2,000,000 values (aliases expanded). Errors: not found,
  // I/O, parse error with its line; a key that stands twice in one map is refused.
  static Result<YamlValue> Load(const std::string& path);
  // Parses text; `file` is only used in messages.
  static Result<YamlValue> Parse(const std::string& text, const std::string& file);

  YamlValue();
  YamlValue(const YamlValue&);
  YamlValue(YamlValue&&) noexcept;
  YamlValue& operator=(const YamlValue&);
  YamlValue& operator=(YamlValue&&) noexcept;
  ~YamlValue();

  bool IsNull() const;
  bool IsScalar() const;
  bool IsSequence() const;
  bool IsMap() const;

  Result<std::string> String() const;
  Result<bool> Bool() const;
  // Numbers may be written as 40000000, 4.0e7, 40_000_000 or, where the key says bytes, with a binary or decimal byte
  // suffix (KiB MiB GiB TiB kB MB GB TB). An integer may be written in any of these forms as long as its value is
  // whole.
  Result<double> Number(Range range) const;
  Result<int64_t> Integer(Range range) const;
  // One of `accepted`, matched exactly.
  Result<std::string> OneOf(const std::vector<std::string>& accepted) const;
  // The elements of a sequence. A scalar is refused.
  Result<std::vector<YamlValue>> Elements() const;
  Result<YamlMap> Map() const;

  // An error at this value's place: "file:line: field: message".
  tl::unexpected<Error> MakeError(ErrorCode code, const std::string& message) const;
  // The scalar as written, shortened for messages; "a list", "a map" or "nothing" otherwise.
  std::string Shown() const;
  const std::string& path() const { return path_; }
  const std::string& file() const;
  int line() const;

 private:
  friend class YamlMap;
  YamlValue(std::shared_ptr<const std::string> file, std::string path, std::shared_ptr<const YamlNode> node);

  std::shared_ptr<const std::string> file_;
  std::string path_;
  std::shared_ptr<const YamlNode> node_;
};

// Reads a map field by field and keeps the first error, so that a reader is a list of assignments ended by Finish():
//
//   PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
//   table.rows = map.Integer("rows", {1, 1e13});
//   table.dim = map.Integer("dim", {1, 65536}, /*fallback=*/128);
//   PORTOLAN_RETURN_IF_ERROR(map.Finish());
//
// After an error every reader returns its fallback (or an empty value). Finish() also refuses keys that nobody asked
// for, naming the nearest known one.
class YamlMap {
 public:
  explicit YamlMap(YamlValue value);
  YamlMap(YamlMap&&) noexcept;
  YamlMap& operator=(YamlMap&&) noexcept;
  ~YamlMap();

  bool Has(const std::string& key);
  // The value of `key`, or nullopt when absent or null. Marks the key as known.
  std::optional<YamlValue> Find(const std::string& key);

  std::string String(const std::string& key);
  std::string String(const std::string& key, const std::string& fallback);
  bool Bool(const std::string& key, bool fallback);
  double Number(const std::string& key, Range range);
  double Number(const std::string& key, Range range, double fallback);
  int64_t Integer(const std::string& key, Range range);
  int64_t Integer(const std::string& key, Range range, int64_t fallback);
  std::string OneOf(const std::string& key, const std::vector<std::string>& accepted);
  std::string OneOf(const std::string& key, const std::vector<std::string>& accepted, const std::string& fallback);
  // The elements of a sequence; empty when absent.
  std::vector<YamlValue> Elements(const std::string& key);
  // All keys in file order (marks every key as known).
  std::vector<std::pair<std::string, YamlValue>> Entries();
  // Runs `read` on the value of `key` when present and keeps its error.
  void Visit(const std::string& key, const std::function<Status(const YamlValue&)>& read);

  // Keeps `error` unless one is already kept.
  void Fail(Error error);
  void Fail(tl::unexpected<Error> error) { Fail(std::move(error.value())); }
  bool ok() const { return !error_.has_value(); }
  // The first error, or an unknown key, or success.
  Status Finish();
  const YamlValue& value() const { return value_; }

 private:
  // The value of `key`; records the error when it is absent or null.
  std::optional<YamlValue> Require(const std::string& key);
  void MarkKnown(const std::string& key);
  // The first key that nobody asked for, or nullopt.
  std::optional<std::pair<std::string, int>> UnknownKey() const;

  YamlValue value_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
  bool all_known_ = false;
  bool missing_ = false;  // error_ is "required, but missing"
};

}  // namespace portolan
