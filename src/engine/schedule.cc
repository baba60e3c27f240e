#include "engine/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/yaml_enum.h"

namespace portolan {
namespace {

constexpr NamedValue<Schedule::Decay> kDecayNames[] = {{"none", Schedule::Decay::kNone},
                                                       {"linear", Schedule::Decay::kLinear},
                                                       {"quadratic", Schedule::Decay::kQuadratic},
                                                       {"cosine", Schedule::Decay::kCosine}};
constexpr Range kRate{0, 1e6};
constexpr Range kSteps{0, 1e12};

}  // namespace

double Schedule::Factor(int64_t step) const {
  if (step < warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (decay == Decay::kNone || step <= decay_start) return 1;
  const double done = std::min(1.0, static_cast<double>(step - decay_start) / static_cast<double>(decay_steps));
  double left = 1 - done;
  if (decay == Decay::kQuadratic) left *= left;
  if (decay == Decay::kCosine) left = (1 + std::cos(M_PI * done)) / 2;
  return end_factor + (1 - end_factor) * left;
}

Result<Schedule> ReadSchedule(const YamlValue& value) {
  Schedule schedule;
  if (value.IsScalar()) {
    PORTOLAN_ASSIGN_OR_RETURN(schedule.rate, value.Number(kRate));
    schedule.row_rate = schedule.rate;
    return schedule;
  }
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  schedule.rate = map.Number("rate", kRate);
  schedule.row_rate = map.Number("embedding", kRate, schedule.rate);
  schedule.warmup_steps = map.Integer("warmup_steps", kSteps, 0);
  schedule.decay = ReadEnum(map, "decay", kDecayNames, Schedule::Decay::kNone);
  schedule.decay_start = map.Integer("decay_start", kSteps, schedule.warmup_steps);
  if (schedule.decay != Schedule::Decay::kNone) schedule.decay_steps = map.Integer("decay_steps", {1, 1e12});
  schedule.end_factor = map.Number("end_factor", {0, 1}, 0.0);
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return schedule;
}

}  // namespace portolan
