#include "base/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml_node.h"

namespace portolan {
namespace {

constexpr std::streamsize kMaxFileBytes = 16 << 20;
constexpr size_t kMaxShown = 60;  // bytes of a value or key that a message repeats

struct Suffix {
  std::string_view name;
  double factor;
};
constexpr std::array kByteSuffixes = {
    Suffix{"KiB", 1024.0}, Suffix{"MiB", 1048576.0}, Suffix{"GiB", 1073741824.0}, Suffix{"TiB", 1099511627776.0},
    Suffix{"kB", 1e3},     Suffix{"MB", 1e6},        Suffix{"GB", 1e9},           Suffix{"TB", 1e12},
};

// Printable and short: control characters become '?', the rest of a long text "...".
std::string Shorten(std::string_view text) {
  std::string shown(text.substr(0, kMaxShown));
  for (char& c : shown) {
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text.size() > kMaxShown ? shown + "..." : shown;
}

std::string ChildPath(const std::string& parent, const std::string& key) {
  return parent.empty() ? Shorten(key) : parent + "." + Shorten(key);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Drops underscores that stand between two digits; false when one stands elsewhere.
bool DropUnderscores(std::string* text) {
  std::string kept;
  for (size_t i = 0; i < text->size(); ++i) {
    if ((*text)[i] != '_') {
      kept += (*text)[i];
    } else if (i == 0 || i + 1 == text->size() || !IsDigit((*text)[i - 1]) || !IsDigit((*text)[i + 1])) {
      return false;
    }
  }
  *text = std::move(kept);
  return true;
}

// Splits "80 GiB" into the number's text, underscores dropped, and the factor; false when it cannot be a number.
bool SplitNumber(std::string_view written, std::string* digits, double* factor) {
  *factor = 1.0;
  for (const Suffix& suffix : kByteSuffixes) {
    if (!written.ends_with(suffix.name)) continue;
    *factor = suffix.factor;
    written.remove_suffix(suffix.name.size());
    if (written.ends_with(' ')) written.remove_suffix(1);
    if (written.empty() || !(IsDigit(written.back()) || written.back() == '.')) return false;
    break;
  }
  *digits = written;
  return DropUnderscores(digits);
}

std::string Bounds(const Range& range) {
  if (range.min == kPositive.min && range.max == kPositive.max) return "must be greater than 0";
  if (range.max == Range{}.max) {
    return range.min == Range{}.min ? "must be a finite number" : fmt::format("must be at least {}", range.min);
  }
  if (range.min == Range{}.min) return fmt::format("must be at most {}", range.max);
  if (range.min == kPositive.min) return fmt::format("must be greater than 0 and at most {}", range.max);
  return fmt::format("must be between {} and {}", range.min, range.max);
}

}  // namespace

Result<YamlValue> YamlValue::Load(const std::string& path) {
  const auto error = [&](ErrorCode code, std::string message) {
    return tl::make_unexpected(Error{code, std::move(message), path, 0, {}});
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return error(ErrorCode::kIo, "is a folder, not a YAML file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    if (std::filesystem::exists(path, ignored)) return error(ErrorCode::kIo, "cannot be read");
    return error(ErrorCode::kNotFound, "no such file");
  }
  std::string text;
  std::array<char, 65536> buffer;
  while (std::ssize(text) <= kMaxFileBytes && (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0)) {
    text.append(buffer.data(), static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad()) return error(ErrorCode::kIo, "reading failed");
  return Parse(text, path);
}

Result<YamlValue> YamlValue::Parse(const std::string& text, const std::string& file) {
  if (std::ssize(text) > kMaxFileBytes) {
    return tl::make_unexpected(Error{ErrorCode::kParse, "is larger than 16 MiB", file, 0, {}});
  }
  PORTOLAN_ASSIGN_OR_RETURN(auto root, ParseYamlTree(text, file));
  return YamlValue(std::make_shared<const std::string>(file), "", std::move(root));
}

YamlValue::YamlValue() : YamlValue(std::make_shared<const std::string>(), "", std::make_shared<const YamlNode>()) {}
YamlValue::YamlValue(std::shared_ptr<const std::string> file, std::string path, std::shared_ptr<const YamlNode> node)
    : file_(std::move(file)), path_(std::move(path)), node_(std::move(node)) {}
YamlValue::YamlValue(const YamlValue&) = default;
YamlValue::YamlValue(YamlValue&&) noexcept = default;
YamlValue& YamlValue::operator=(const YamlValue&) = default;
YamlValue& YamlValue::operator=(YamlValue&&) noexcept = default;
YamlValue::~YamlValue() = default;

bool YamlValue::IsNull() const { return node_->kind == YamlNode::Kind::kNull; }
bool YamlValue::IsScalar() const { return node_->kind == YamlNode::Kind::kScalar; }
bool YamlValue::IsSequence() const { return node_->kind == YamlNode::Kind::kSequence; }
bool YamlValue::IsMap() const { return node_->kind == YamlNode::Kind::kMap; }
const std::string& YamlValue::file() const { return *file_; }
int YamlValue::line() const { return node_->line; }

std::string YamlValue::Shown() const {
  switch (node_->kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "'" + Shorten(node_->scalar) + "'";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  PORTOLAN_CHECK(false, "YAML node of no kind");
}

tl::unexpected<Error> YamlValue::MakeError(ErrorCode code, const std::string& message) const {
  return tl::make_unexpected(Error{code, message, *file_, node_->line, path_});
}

Result<std::string> YamlValue::String() const {
  if (!IsScalar()) return MakeError(ErrorCode::kInvalidValue, "must be text, got " + Shown());
  return node_->scalar;
}

Result<bool> YamlValue::Bool() const {
  if (IsScalar() && node_->scalar == "true") return true;
  if (IsScalar() && node_->scalar == "false") return false;
  return MakeError(ErrorCode::kInvalidValue, "must be true or false, got " + Shown());
}

Result<double> YamlValue::Number(Range range) const {
  std::string digits;
  double factor = 1.0;
  double value = 0.0;
  if (!IsScalar() || !SplitNumber(node_->scalar, &digits, &factor) || !ParseDouble(digits, &value)) {
    return MakeError(ErrorCode::kInvalidValue, "must be a number, got " + Shown());
  }
  value *= factor;
  if (!std::isfinite(value)) return MakeError(ErrorCode::kInvalidValue, "must be a finite number, got " + Shown());
  if (factor != 1.0 && !path_.empty() && path_.find("bytes") == std::string::npos) {
    return MakeError(ErrorCode::kInvalidValue, "is not in bytes, so it takes no byte suffix, got " + Shown());
  }
  if (value < range.min || value > range.max) {
    return MakeError(ErrorCode::kInvalidValue, Bounds(range) + ", got " + Shown());
  }
  return value;
}

Result<int64_t> YamlValue::Integer(Range range) const {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  PORTOLAN_ASSIGN_OR_RETURN(const double rounded, Number(range));
  std::string digits;
  double factor = 1.0;
  long long exact = 0;
  if (SplitNumber(node_->scalar, &digits, &factor) && factor == 1.0 && ParseInt64(digits, &exact)) return exact;
  if (rounded != std::floor(rounded)) {
    return MakeError(ErrorCode::kInvalidValue, "must be a whole number, got " + Shown());
  }
  if (rounded < -kTwoTo63 || rounded >= kTwoTo63) {
    return MakeError(ErrorCode::kInvalidValue, "must fit a 64-bit integer, got " + Shown());
  }
  return static_cast<int64_t>(rounded);
}

Result<std::string> YamlValue::OneOf(const std::vector<std::string>& accepted) const {
  if (IsScalar() && std::find(accepted.begin(), accepted.end(), node_->scalar) != accepted.end()) return node_->scalar;
  return MakeError(ErrorCode::kInvalidValue, "must be one of " + Join(accepted, ", ") + ", got " + Shown() +
                                                 (IsScalar() ? DidYouMean(node_->scalar, accepted) : ""));
}

Result<std::vector<YamlValue>> YamlValue::Elements() const {
  if (!IsSequence()) return MakeError(ErrorCode::kInvalidValue, "must be a list, got " + Shown());
  std::vector<YamlValue> elements;
  elements.reserve(node_->elements.size());
  for (size_t i = 0; i < node_->elements.size(); ++i) {
    elements.push_back(YamlValue(file_, fmt::format("{}[{}]", path_, i), node_->elements[i]));
  }
  return elements;
}

Result<YamlMap> YamlValue::Map() const {
  if (!IsMap()) return MakeError(ErrorCode::kInvalidValue, "must be a map, got " + Shown());
  return YamlMap(*this);
}

YamlMap::YamlMap(YamlValue value) : value_(std::move(value)) {}
YamlMap::YamlMap(YamlMap&&) noexcept = default;
YamlMap& YamlMap::operator=(YamlMap&&) noexcept = default;
YamlMap::~YamlMap() = default;

void YamlMap::MarkKnown(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

std::optional<YamlValue> YamlMap::Find(const std::string& key) {
  MarkKnown(key);
  for (const YamlNode::Entry& entry : value_.node_->entries) {
    if (entry.key != key) continue;
    if (entry.value->kind == YamlNode::Kind::kNull) return std::nullopt;
    return YamlValue(value_.file_, ChildPath(value_.path_, key), entry.value);
  }
  return std::nullopt;
}

bool YamlMap::Has(const std::string& key) { return Find(key).has_value(); }

std::optional<YamlValue> YamlMap::Require(const std::string& key) {
  std::optional<YamlValue> found = Find(key);
  if (!found && ok()) {
    Fail(Error{ErrorCode::kMissingField, "is required but missing", value_.file(), value_.line(),
               ChildPath(value_.path_, key)});
  }
  return ok() ? found : std::nullopt;
}

namespace {

// The value that `read` gives for `found`, or `fallback` when there is none or it is in error.
template <typename T, typename Read>
T ReadOr(YamlMap* map, const std::optional<YamlValue>& found, T fallback, const Read& read) {
  if (!found || !map->ok()) return fallback;
  Result<T> result = read(*found);
  if (result) return std::move(*result);
  map->Fail(std::move(result.error()));
  return fallback;
}

}  // namespace

std::string YamlMap::String(const std::string& key) {
  return ReadOr<std::string>(this, Require(key), {}, [](const YamlValue& v) { return v.String(); });
}
std::string YamlMap::String(const std::string& key, const std::string& fallback) {
  return ReadOr<std::string>(this, Find(key), fallback, [](const YamlValue& v) { return v.String(); });
}
bool YamlMap::Bool(const std::string& key, bool fallback) {
  return ReadOr<bool>(this, Find(key), fallback, [](const YamlValue& v) { return v.Bool(); });
}
double YamlMap::Number(const std::string& key, Range range) {
  return ReadOr<double>(this, Require(key), 0.0, [&](const YamlValue& v) { return v.Number(range); });
}
double YamlMap::Number(const std::string& key, Range range, double fallback) {
  return ReadOr<double>(this, Find(key), fallback, [&](const YamlValue& v) { return v.Number(range); });
}
int64_t YamlMap::Integer(const std::string& key, Range range) {
  return ReadOr<int64_t>(this, Require(key), 0, [&](const YamlValue& v) { return v.Integer(range); });
}
int64_t YamlMap::Integer(const std::string& key, Range range, int64_t fallback) {
  return ReadOr<int64_t>(this, Find(key), fallback, [&](const YamlValue& v) { return v.Integer(range); });
}
std::string YamlMap::OneOf(const std::string& key, const std::vector<std::string>& accepted) {
  return ReadOr<std::string>(this, Require(key), {}, [&](const YamlValue& v) { return v.OneOf(accepted); });
}
std::string YamlMap::OneOf(const std::string& key, const std::vector<std::string>& accepted,
                           const std::string& fallback) {
  return ReadOr<std::string>(this, Find(key), fallback, [&](const YamlValue& v) { return v.OneOf(accepted); });
}

std::vector<YamlValue> YamlMap::Elements(const std::string& key) {
  return ReadOr<std::vector<YamlValue>>(this, Find(key), {}, [](const YamlValue& v) { return v.Elements(); });
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::Entries() {
  all_known_ = true;
  std::vector<std::pair<std::string, YamlValue>> entries;
  entries.reserve(value_.node_->entries.size());
  for (const YamlNode::Entry& entry : value_.node_->entries) {
    entries.emplace_back(entry.key, YamlValue(value_.file_, ChildPath(value_.path_, entry.key), entry.value));
  }
  return entries;
}

void YamlMap::Visit(const std::string& key, const std::function<Status(const YamlValue&)>& read) {
  const std::optional<YamlValue> found = Find(key);
  if (!found || !ok()) return;
  if (Status status = read(*found); !status) Fail(std::move(status.error()));
}

void YamlMap::Fail(Error error) {
  if (error_) return;
  missing_ = error.code == ErrorCode::kMissingField;
  error_ = std::move(error);
}

std::optional<std::pair<std::string, int>> YamlMap::UnknownKey() const {
  if (all_known_) return std::nullopt;
  const std::unordered_set<std::string> known(known_.begin(), known_.end());
  for (const YamlNode::Entry& entry : value_.node_->entries) {
    if (!known.contains(entry.key)) return std::pair(entry.key, entry.line);
  }
  return std::nullopt;
}

Status YamlMap::Finish() {
  const auto unknown = UnknownKey();
  if (error_) {
    Error error = *error_;
    if (missing_ && unknown) {
      error.message += fmt::format("; '{}' on line {} is not a known key", Shorten(unknown->first), unknown->second);
    }
    return tl::make_unexpected(std::move(error));
  }
  if (!unknown) return {};
  return tl::make_unexpected(Error{
      ErrorCode::kUnknownField,
      "unknown key; accepted: " + (known_.empty() ? "none" : Join(known_, ", ")) + DidYouMean(unknown->first, known_),
      value_.file(), unknown->second, ChildPath(value_.path(), unknown->first)});
}

}  // namespace portolan
