#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace portolan {

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string DidYouMean(std::string_view value, const std::vector<std::string>& known) {
  value = value.substr(0, 64);
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(LowerCase(value), LowerCase(candidate));
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  // Two edits (a swapped pair of letters) from four letters on, and a third of a long word.
  const int length = static_cast<int>(value.size());
  const int limit = std::max(length < 4 ? 1 : 2, length / 3);
  if (best == nullptr || best_distance > limit) return "";
  return "; did you mean '" + *best + "'?";
}

namespace {

// Drops one leading plus sign; a second sign behind it then fails to parse.
std::string_view WithoutPlus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool ParseInt64(std::string_view text, long long* value) { return ParseWhole(WithoutPlus(text), value); }

bool ParseDouble(std::string_view text, double* value) {
  text = WithoutPlus(text);
  const std::string lower = text.size() <= 5 ? LowerCase(text) : "";
  if (lower == ".nan" || lower == ".inf") text.remove_prefix(1);
  if (lower == "-.inf") {
    *value = -std::numeric_limits<double>::infinity();
    return true;
  }
  return ParseWhole(text, value);
}

}  // namespace portolan
