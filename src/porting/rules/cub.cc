// cub:: becomes hipcub::. A logical warp has by default as many threads as the wave: 64, where CUB's has 32.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {

void ApplyCub(const RuleInput& input, RuleOutput* output) {
  struct WarpClass {
    std::string_view name;
    size_t before;  // template arguments before the logical warp's threads
  };
  constexpr std::array<WarpClass, 2> kClasses = {{{"WarpReduce", 1}, {"WarpScan", 1}}};
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!input.IsFreeName(i, "cub") || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    const bool qualifies = source.Is(i + 1, "::");
    const bool imports = i >= 1 && source.Is(i - 1, "namespace") && !source.Is(i + 1, "{");
    const bool aliased = i >= 1 && source.Is(i - 1, "=") && source.Is(i + 1, ";");
    if (!qualifies && !imports && !aliased) continue;
    output->Replace(source, i, "hipcub");
    for (const WarpClass& warp : kClasses) {
      if (!source.Is(i + 2, warp.name) || !source.Is(i + 3, "<")) continue;
      const size_t close = source.ClosingAngle(i + 3);
      if (close == source.size()) continue;
      size_t commas = 0;
      for (size_t t = i + 4; t < close; ++t) {
        if (source.Is(t, "<")) t = std::min(source.ClosingAngle(t), close);
        commas += source.Is(t, ",") ? 1 : 0;
      }
      if (commas + 1 != warp.before) continue;
      output->Find(source, i, FindingLevel::kError, "cub",
                   fmt::format("without a logical warp size, hipcub::{} spans {} threads, not 32; {}", warp.name,
                               input.target.wave_size, WaveText(input.target)),
                   "port: adds the size 32");
      output->Insert(source.tokens()[close].begin, ", 32");
    }
  }
}

}  // namespace portolan
