#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/cpu_clones.h"

// Functions of one number without branches or calls, so that loops over them become vector instructions: the C
// library's take one number a call, 5 ns each.
namespace portolan::kernels {

// e^x, to 2 units in the last place for x in [-87, 88], and e^-87 or e^88 beyond. x = n ln 2 + r with |r| <= ln 2 / 2;
// e^r by its Taylor series to r^7 (remainder below 6e-9), 2^n by the exponent's bits.
PORTOLAN_CPU_INLINE float VectorExp(float x) {
  const float in_range = std::min(std::max(x, -87.0f), 88.0f);
  // Adding 1.5 * 2^23 rounds to a whole number; ln 2 in two parts, of which the first has few bits.
  constexpr float kRound = 12582912.0f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float shifted = in_range * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (in_range - n * kLn2High) - n * kLn2Low;
  float power = 1.0f / 5040;
  power = power * r + 1.0f / 720;
  power = power * r + 1.0f / 120;
  power = power * r + 1.0f / 24;
  power = power * r + 1.0f / 6;
  power = power * r + 0.5f;
  power = power * r + 1.0f;
  power = power * r + 1.0f;
  const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23;
  return power * std::bit_cast<float>(exponent);
}

PORTOLAN_CPU_INLINE float VectorSigmoid(float x) { return 1.0f / (1.0f + VectorExp(-x)); }

// erf(x) from `gauss` = e^(-x^2), to 4e-7 absolutely (Abramowitz and Stegun 7.1.26: 1.5e-7, and rounding).
PORTOLAN_CPU_INLINE float VectorErf(float x, float gauss) {
  const float t = 1.0f / (1.0f + 0.3275911f * std::abs(x));
  float sum = 1.061405429f;
  sum = sum * t - 1.453152027f;
  sum = sum * t + 1.421413741f;
  sum = sum * t - 0.284496736f;
  sum = sum * t + 0.254829592f;
  return std::copysign(1.0f - sum * t * gauss, x);
}

}  // namespace portolan::kernels
