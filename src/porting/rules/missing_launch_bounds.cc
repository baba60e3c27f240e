// A kernel without launch bounds is compiled for 1024 threads, which leaves each thread a quarter of the registers that
// 256 threads would. Where every launch in the project has a size that is known, the largest becomes the bound, and 256
// where that is more.

#include <fmt/format.h>

#include <algorithm>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyMissingLaunchBounds(const RuleInput& input, RuleOutput* output) {
  constexpr long long kAssumed = 1024;         // HIP's documentation, "Kernel language", __launch_bounds__
  constexpr long long kNoMoreRegisters = 256;  // one wave a SIMD: each lane may have all 512 registers
  const SourceFile& source = input.source;
  for (const DeviceFunction& function : source.device_functions()) {
    if (!function.is_kernel || input.IsDead(function.name_token)) continue;
    if (source.LivenessOf(function.name_token) == Liveness::kHipOnly) continue;
    const auto launches = input.project.launched_blocks.find(function.name);
    if (launches == input.project.launched_blocks.end() || launches->second.empty()) continue;
    const long long largest = *launches->second.rbegin();
    if (*launches->second.begin() <= 0 || largest >= kAssumed) continue;
    const long long bound = std::max(largest, kNoMoreRegisters);
    // From the declaration's start to its name, and behind the parameters: attributes may stand at either.
    size_t first = function.name_token;
    while (first > 0 && !source.Is(first - 1, ";") && !source.Is(first - 1, "}") && !source.Is(first - 1, "{") &&
           source.tokens()[first - 1].kind != TokenKind::kDirectiveEnd) {
      --first;
    }
    bool bounded = false;
    for (size_t i = first; i < function.body_begin; ++i) {
      const std::string_view text = source.Text(i);
      // A macro of the project's in capitals may be a bound (C10_LAUNCH_BOUNDS_1(256)).
      bounded = bounded || text == "__launch_bounds__" || text == "__attribute__" ||
                text.find("BOUNDS") != std::string_view::npos;
    }
    if (bounded || source.tokens()[function.name_token].in_directive) continue;
    output->Find(source, function.name_token, FindingLevel::kNote, "missing-launch-bounds",
                 fmt::format("'{}' is launched with at most {} threads a block and compiled for {}", function.name,
                             largest, kAssumed),
                 fmt::format("port: __launch_bounds__({})", bound));
    output->Insert(source.tokens()[function.name_token].begin, fmt::format("__launch_bounds__({}) ", bound));
  }
}

}  // namespace portolan
