// Device functions that CUDA has and HIP lacks, and that the compatibility header brings: byte-wise SIMD, dot products,
// cache-hinted loads and stores, __nanosleep.

#include <fmt/format.h>

#include "porting/compat.h"
#include "porting/rules/rules.h"

namespace portolan {

void ApplyDeviceIntrinsics(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i + 1, "(")) continue;
    if (source.Is(i - 1, "::") && source.IsIdentifier(i - 2)) continue;  // of another namespace
    const std::string_view name = source.Text(i);
    const std::string_view part = CompatPartOf(name);
    if (part.empty() || part.substr(0, 5) == "warp_" || !input.IsFreeName(i, name)) continue;
    if (input.project.own_names.count(name) > 0 || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    output->Find(
        source, i, FindingLevel::kError, "device-intrinsic", fmt::format("HIP declares no {}", name),
        fmt::format("port: calls portolan::{} of the compatibility header", name.substr(name.find_first_not_of('_'))));
    output->Replace(source, i, "portolan::" + std::string(name.substr(name.find_first_not_of('_'))));
    output->compat.insert(std::string(part));
  }
}

}  // namespace portolan
