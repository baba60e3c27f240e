#pragma once

#include <cstdint>

#include "device/host_device.h"

// Conversions between fp32 and the narrow formats of embedding rows, and the random bits of stochastic rounding. Plain
// integer arithmetic without branches or tables, so that compilers vectorise it and every backend rounds alike.
namespace portolan::kernels {

PORTOLAN_HOST_DEVICE inline uint32_t BitsOf(float value) {
  return __builtin_bit_cast(uint32_t, value);  // std::bit_cast is not for device code
}
PORTOLAN_HOST_DEVICE inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

PORTOLAN_HOST_DEVICE inline float Bf16ToFloat(uint16_t bits) { return FromBits(static_cast<uint32_t>(bits) << 16); }
// Round to nearest, ties to even. NaN stays NaN.
PORTOLAN_HOST_DEVICE inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
}
// Adds 16 random bits below the kept mantissa and truncates: the expectation over uniform `random` is `value` (finite
// values below the largest bf16). NaN and infinities stay.
PORTOLAN_HOST_DEVICE inline uint16_t FloatToBf16Stochastic(float value, uint32_t random) {
  const uint32_t bits = BitsOf(value);
  const bool special = (bits & 0x7f800000u) == 0x7f800000u;
  return static_cast<uint16_t>(special ? FloatToBf16(value) : (bits + (random >> 16)) >> 16);
}

// IEEE half to float, subnormals included: the exponent is moved by a multiplication with 2^112, which also normalises.
PORTOLAN_HOST_DEVICE inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;  // infinities and NaN
  const float scaled = FromBits(magnitude) * FromBits(0x77800000u);      // 2^112
  return FromBits((special != 0 ? special | magnitude : BitsOf(scaled)) | sign);
}
// The half below in magnitude, after `increment` was added to the 13 mantissa bits that a half does not hold.
PORTOLAN_HOST_DEVICE inline uint16_t HalfFromIncremented(float value, uint32_t increment) {
  const uint32_t sign = (BitsOf(value) >> 16) & 0x8000u;
  const uint32_t magnitude = BitsOf(value) & 0x7fffffffu;
  const uint32_t normal = (magnitude + increment - 0x38000000u) >> 13;
  const uint32_t overflow = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t half = magnitude + increment >= 0x47800000u ? overflow : normal;
  return static_cast<uint16_t>(half | sign);
}
// Subnormal halves are multiples of 2^-24; `offset` in [0, 1), a multiple of 2^-14 so that the sum is exact, is added
// in that unit before truncation.
PORTOLAN_HOST_DEVICE inline uint16_t HalfSubnormal(float value, float offset) {
  const uint32_t sign = (BitsOf(value) >> 16) & 0x8000u;
  const float units = FromBits(BitsOf(value) & 0x7fffffffu) * 16777216.0f + offset;
  return static_cast<uint16_t>(static_cast<uint32_t>(units) | sign);
}
PORTOLAN_HOST_DEVICE inline bool BelowNormalHalf(float value) {
  return (BitsOf(value) & 0x7fffffffu) < 0x38800000u;
}  // 2^-14
// Round to nearest, ties to even. NaN stays NaN; beyond 65504 the result is infinite as IEEE says.
PORTOLAN_HOST_DEVICE inline uint16_t FloatToHalf(float value) {
  if (BelowNormalHalf(value)) {
    // Adding 0.5 at magnitude 2^-1 leaves 24 bits: the sum rounds to a multiple of 2^-24, ties to even.
    const uint32_t sign = (BitsOf(value) >> 16) & 0x8000u;
    const float sum = FromBits(BitsOf(value) & 0x7fffffffu) + 0.5f;
    return static_cast<uint16_t>((BitsOf(sum) - BitsOf(0.5f)) | sign);
  }
  return HalfFromIncremented(value, 0xfffu + ((BitsOf(value) >> 13) & 1u));
}
// Unbiased as FloatToBf16Stochastic, subnormal halves included; values beyond 65504 saturate there, so that one step
// cannot make a row infinite. NaN stays NaN.
PORTOLAN_HOST_DEVICE inline uint16_t FloatToHalfStochastic(float value, uint32_t random) {
  const uint32_t magnitude = BitsOf(value) & 0x7fffffffu;
  const uint32_t sign = (BitsOf(value) >> 16) & 0x8000u;
  if (BelowNormalHalf(value)) return HalfSubnormal(value, static_cast<float>(random >> 18) * FromBits(0x38800000u));
  if (magnitude <= 0x7f800000u && magnitude + (random >> 19) >= 0x477fe000u + 0x2000u) {
    return static_cast<uint16_t>(0x7bffu | sign);
  }
  return HalfFromIncremented(value, random >> 19);
}

// Random bits for one number of one row: a function of its place and the seed only, so that an update does not depend
// on the order or the number of threads. Finaliser of MurmurHash3 (Appleby, public domain) on 64, then on 32 bits.
PORTOLAN_HOST_DEVICE inline uint32_t RowKey(uint64_t seed, uint64_t row) {
  uint64_t mixed = seed + (row + 1) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdull;
  mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return static_cast<uint32_t>(mixed >> 32);
}
PORTOLAN_HOST_DEVICE inline uint32_t RandomBits(uint32_t row_key, uint32_t column) {
  uint32_t mixed = row_key + (column + 1u) * 0x9e3779b9u;
  mixed = (mixed ^ (mixed >> 16)) * 0x85ebca6bu;
  mixed = (mixed ^ (mixed >> 13)) * 0xc2b2ae35u;
  return mixed ^ (mixed >> 16);
}

}  // namespace portolan::kernels
