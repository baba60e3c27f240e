// Atomics that a project defines for old CUDA chips and that HIP has: both are candidates, or one is defined twice.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {
void ApplyAtomicOverloads(const RuleInput& input, RuleOutput* output) {
  struct Overload {
    std::string_view name;
    std::string_view type;
  };
  constexpr std::array<Overload, 6> kOverloads = {{{"atomicAdd", "double"},
                                                   {"atomicMax", "float"},
                                                   {"atomicMax", "double"},
                                                   {"atomicMin", "float"},
                                                   {"atomicMin", "double"},
                                                   {"atomicAdd", "float"}}};
  const SourceFile& source = input.source;
  for (const DeviceFunction& function : source.device_functions()) {
    if (function.name.substr(0, 6) != "atomic" || input.IsDead(function.name_token)) continue;
    if (source.LivenessOf(function.name_token) == Liveness::kHipOnly) continue;
    for (const Overload& overload : kOverloads) {
      if (function.name != overload.name || !source.Is(function.name_token + 2, overload.type) ||
          !source.Is(function.name_token + 3, "*")) {
        continue;
      }
      output->Find(source, function.name_token, FindingLevel::kError, "atomic-overload",
                   fmt::format("HIP defines {}({} *, {}) itself: a second definition is refused or ambiguous",
                               overload.name, overload.type, overload.type),
                   "port: leaves the definition to CUDA's compiler");
      output->LeaveToCuda(source, function.name_token, function.body_end);
    }
  }
}

}  // namespace portolan
