#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/yaml_enum.h"
#include "engine/data/random_order.h"

namespace portolan {

// How the number in a categorical field becomes an id in [0, rows).
enum class IdRule {
  kExact,   // the number is the id; outside [0, rows) is out of range
  kModulo,  // number mod rows; a negative number is out of range
  kHash,    // floor(mix(number) * rows / 2^64), mix = SplitMix64's finalizer; of a text: of its FNV-1a hash
};
inline constexpr NamedValue<IdRule> kIdRules[] = {
    {"exact", IdRule::kExact}, {"modulo", IdRule::kModulo}, {"hash", IdRule::kHash}};

// The ids of one feature.
class IdMap {
 public:
  IdMap(IdRule rule, int64_t rows)
      : rule_(rule), rows_(static_cast<uint64_t>(rows)), inverse_(~uint64_t{0} / static_cast<uint64_t>(rows) + 1) {
    PORTOLAN_CHECK(rows >= 1, "a feature has rows");
  }
  IdRule rule() const { return rule_; }
  int64_t rows() const { return static_cast<int64_t>(rows_); }
  // False when the rule has no id for the number.
  bool Map(int64_t number, int64_t* id) const {
    if (rule_ == IdRule::kHash) {
      *id = FromBits(static_cast<uint64_t>(number));
      return true;
    }
    if (number < 0) return false;
    if (static_cast<uint64_t>(number) < rows_) {
      *id = number;
      return true;
    }
    *id = number % rows();
    return rule_ == IdRule::kModulo;
  }
  // number mod rows, for rows < 2^32: Lemire, Kaser, Kurz, Faster remainder by direct computation (2019), theorem 1.
  // One row: the inverse is 0, and so is the answer.
  int64_t Modulo32(uint32_t number) const { return static_cast<int64_t>(ScaleBits(inverse_ * number, rows_)); }
  int64_t FromBits(uint64_t bits) const { return static_cast<int64_t>(ScaleBits(MixBits(bits), rows_)); }

 private:
  IdRule rule_;
  uint64_t rows_;
  uint64_t inverse_;  // ceil(2^64 / rows)
};

// What is done to a dense value x before the model sees it.
enum class DenseTransform {
  kNone,         // x
  kLog1p,        // log(x + 1), fp32; x < 0 is a negative value for the policy (facebookresearch/dlrm's Criteo rule)
  kSignedLog1p,  // sign(x) * log(|x| + 1)
};
inline constexpr NamedValue<DenseTransform> kDenseTransforms[] = {
    {"none", DenseTransform::kNone}, {"log1p", DenseTransform::kLog1p}, {"signed_log1p", DenseTransform::kSignedLog1p}};

// x >= 0 for kLog1p: negative values are the policy's.
inline float Transformed(DenseTransform transform, float x) {
  switch (transform) {
    case DenseTransform::kNone:
      break;
    case DenseTransform::kLog1p:
      return std::log(x + 1.0F);
    case DenseTransform::kSignedLog1p:
      return std::copysign(std::log(std::abs(x) + 1.0F), x);
  }
  return x;
}

}  // namespace portolan
