#pragma once

#include <cstdint>

#include "base/yaml.h"

namespace portolan {

// Learning rate over the steps: linear warm-up from 0 to the base rate, constant, then decay to the end rate.
struct Schedule {
  enum class Decay { kNone, kLinear, kQuadratic, kCosine };
  double rate = 0.01;
  double row_rate = 0.01;  // of embedding rows, scaled alike
  int64_t warmup_steps = 0;
  Decay decay = Decay::kNone;
  int64_t decay_start = 0;
  int64_t decay_steps = 1;
  double end_factor = 0;  // of the base rate, from decay_start + decay_steps on

  // Factor of the base rates at `step`, from 1. Warm-up: step / warmup_steps. Decay with p = share of decay_steps done:
  // 1 - p, (1 - p)^2 (MLPerf DLRM's polynomial of power 2) or (1 + cos(pi p)) / 2, between 1 and end_factor.
  double Factor(int64_t step) const;
};

// Reads {rate, embedding, warmup_steps, decay, decay_start, decay_steps, end_factor}, or one number for both rates.
Result<Schedule> ReadSchedule(const YamlValue& value);

}  // namespace portolan
