#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace portolan {

std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> Split(std::string_view text, char separator);
std::string LowerCase(std::string_view text);

// Levenshtein distance, counted in bytes.
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" for the nearest of `known` when it is near enough, otherwise "".
std::string DidYouMean(std::string_view value, const std::vector<std::string>& known);

// Whole-string decimal integer or floating-point number. Returns false on anything else (trailing text, overflow,
// hexadecimal floats); "nan" and "inf" are accepted, so that the caller can refuse them by name.
bool ParseInt64(std::string_view text, long long* value);
bool ParseDouble(std::string_view text, double* value);

}  // namespace portolan
