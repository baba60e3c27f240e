// thrust::cuda::par and its kin live in thrust::hip.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyThrustPolicy(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 2; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i) || !source.Is(i - 1, "::")) continue;
    if (source.LivenessOf(i) == Liveness::kHipOnly) continue;
    const bool of_thrust = source.Is(i - 2, "thrust") || source.Is(i - 2, "system");
    if (!of_thrust || (!source.Is(i, "cuda") && !source.Is(i, "cuda_cub"))) continue;
    output->Find(source, i, FindingLevel::kError, "thrust-policy",
                 fmt::format("rocThrust has no thrust::{}", source.Text(i)), "port: thrust::hip");
    output->Replace(source, i, source.Is(i, "cuda") ? "hip" : "hip_rocprim");
  }
}

}  // namespace portolan
