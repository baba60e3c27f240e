#include "porting/verify/buffer_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace portolan {
namespace {

constexpr size_t kMostSorted = size_t{64} << 20;  // bytes that are looked at for a permutation

float HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float fraction = static_cast<float>(bits & 1023);
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double Read(const uint8_t* at, char letter) {
  switch (letter) {
    case 'f': {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    case 'd': {
      double value = 0;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    case 'b': {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      const uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float value = 0;
      std::memcpy(&value, &wide, sizeof value);
      return value;
    }
    default: {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      return HalfValue(bits);
    }
  }
}

double Tolerance(char letter) {
  switch (letter) {
    case 'f':
      return 1e-3;
    case 'd':
      return 1e-9;
    default:
      return 2e-2;
  }
}

std::string ValueText(const uint8_t* at, char letter, int bytes) {
  if (letter == 'f' || letter == 'd' || letter == 'h' || letter == 'b') return fmt::format("{:.9g}", Read(at, letter));
  int64_t value = 0;
  switch (bytes) {
    case 1:
      return fmt::format("{}", *at);
    case 2: {
      int16_t small = 0;
      std::memcpy(&small, at, sizeof small);
      return fmt::format("{}", small);
    }
    case 4: {
      int32_t small = 0;
      std::memcpy(&small, at, sizeof small);
      return fmt::format("{}", small);
    }
    case 8:
      std::memcpy(&value, at, sizeof value);
      return fmt::format("{}", value);
    default: {
      std::string text = "0x";
      for (int i = std::min(bytes, 16) - 1; i >= 0; --i) text += fmt::format("{:02x}", at[i]);
      return text;
    }
  }
}

bool Unwritten(const uint8_t* expected, const uint8_t* seen, int bytes, FillBytes fill) {
  if (fill.expected == fill.seen) return false;
  for (int i = 0; i < bytes; ++i) {
    if (expected[i] != seen[i] && (expected[i] != fill.expected || seen[i] != fill.seen)) return false;
  }
  return true;
}

// Whether four bytes read as floats of a usual size in both.
bool LookLikeFloats(const uint8_t* a, const uint8_t* b) {
  for (const uint8_t* side : {a, b}) {
    const double value = std::abs(Read(side, 'f'));
    if (!(value == 0 || (value > 1e-12 && value < 1e12))) return false;
  }
  return true;
}

bool IsPermutation(const uint8_t* expected, const uint8_t* seen, size_t bytes, size_t element) {
  if (bytes > kMostSorted) return false;
  const auto sorted = [&](const uint8_t* data) {
    std::vector<std::string> elements;
    elements.reserve(bytes / element);
    for (size_t i = 0; i + element <= bytes; i += element) {
      elements.emplace_back(reinterpret_cast<const char*>(data) + i, element);
    }
    std::sort(elements.begin(), elements.end());
    return elements;
  };
  return sorted(expected) == sorted(seen);
}

}  // namespace

BufferDifference CompareBuffers(const uint8_t* expected, const uint8_t* seen, size_t bytes, ElementType type,
                                FillBytes fill) {
  BufferDifference difference;
  if (std::memcmp(expected, seen, bytes) == 0) return difference;
  const bool unknown = type.letter == '?';
  const bool floating = type.letter == 'f' || type.letter == 'd' || type.letter == 'h' || type.letter == 'b';
  int element = type.bytes;
  if (unknown || element < 1) element = bytes % 4 == 0 ? 4 : 1;
  if (static_cast<size_t>(element) > bytes) element = 1;
  double largest = 0;
  if (floating) {
    for (size_t i = 0; i + static_cast<size_t>(element) <= bytes; i += static_cast<size_t>(element)) {
      const double value = std::abs(Read(expected + i, type.letter));
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
  }
  for (size_t i = 0; i + static_cast<size_t>(element) <= bytes; i += static_cast<size_t>(element)) {
    const uint8_t* a = expected + i;
    const uint8_t* b = seen + i;
    if (std::memcmp(a, b, static_cast<size_t>(element)) == 0) continue;
    if (Unwritten(a, b, element, fill)) continue;
    const char letter = unknown && element == 4 && LookLikeFloats(a, b) ? 'f' : type.letter;
    if (letter == 'f' || letter == 'd' || letter == 'h' || letter == 'b') {
      const double x = Read(a, letter);
      const double y = Read(b, letter);
      if (std::isnan(x) && std::isnan(y)) continue;
      const double scale = std::max({std::abs(x), std::abs(y), 1e-3 * largest});
      const double relative = scale == 0 ? 0 : std::abs(x - y) / scale;
      if (relative <= Tolerance(letter)) {
        difference.largest_relative = std::max(difference.largest_relative, relative);
        continue;
      }
    }
    if (difference.elements++ == 0) {
      difference.first = static_cast<int64_t>(i) / element;
      difference.expected = ValueText(a, letter, element);
      difference.seen = ValueText(b, letter, element);
    }
  }
  if (difference.elements > 0) difference.permuted = IsPermutation(expected, seen, bytes, static_cast<size_t>(element));
  return difference;
}

}  // namespace portolan
