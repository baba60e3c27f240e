// __launch_bounds__(threads, blocks): CUDA's second bound is blocks a multiprocessor, HIP's is waves a SIMD. On CDNA a
// compute unit has 4 SIMDs: waves = blocks * threads / wave / 4.

#include <fmt/format.h>

#include <algorithm>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

constexpr long long kSimdsPerUnit = 4;  // AMD CDNA ISA guides, GCN to CDNA 4

}  // namespace

void ApplyLaunchBounds(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i, "__launch_bounds__") || !source.Is(i + 1, "(") || input.IsDead(i)) {
      continue;
    }
    if (source.LivenessOf(i) == Liveness::kHipOnly) continue;
    const auto arguments = source.Arguments(i + 1);
    if (arguments.size() < 2 || source.Is(arguments[1].first, "PORTOLAN_WAVES")) continue;
    const auto [begin, end] = arguments[1];
    if (begin >= end || arguments[0].first >= arguments[0].second) continue;
    long long threads = 0;
    long long blocks = 0;
    const bool known = input.Constant(arguments[0].first, arguments[0].second, &threads) &&
                       input.Constant(begin, end, &blocks) && threads > 0 && threads <= 1024 && blocks > 0 &&
                       blocks <= 64;
    const long long per_simd = input.target.wave_size * kSimdsPerUnit;
    if (known) {
      const long long waves = std::max(1LL, (blocks * threads + per_simd - 1) / per_simd);
      if (waves == blocks) continue;
      output->Find(source, i, FindingLevel::kWarning, "launch-bounds",
                   fmt::format("{} blocks of {} threads are {} waves a SIMD on {}; HIP reads the {} as waves", blocks,
                               threads, waves, input.target.gfx, blocks),
                   fmt::format("port: PORTOLAN_WAVES({}, {}), which is {}", threads, blocks, waves));
    } else {
      output->Find(
          source, i, FindingLevel::kWarning, "launch-bounds",
          fmt::format("HIP reads the second bound as waves a SIMD, not blocks a unit: waves = blocks x threads "
                      "/ {} on {}",
                      per_simd, input.target.gfx),
          "port: PORTOLAN_WAVES(threads, blocks) converts it");
    }
    const std::string text = fmt::format(
        "PORTOLAN_WAVES({}, {})", source.Range(arguments[0].first, arguments[0].second), source.Range(begin, end));
    output->edits.push_back({source.tokens()[begin].begin, source.tokens()[end - 1].end, text});
    output->compat.insert("launch_bounds");
    if (arguments.size() > 2) {  // CUDA's third bound, blocks a cluster
      output->edits.push_back({source.tokens()[end - 1].end, source.tokens()[arguments.back().second - 1].end, ""});
    }
  }
}

}  // namespace portolan
