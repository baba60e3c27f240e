// A name such as WARP_SIZE with the value 32, and lane or warp numbers made with 31, 32 or 5, next to warp builtins.
// The port keeps teams of 32, for which these are right; by themselves they only tell where a 64-lane version begins.

#include <fmt/format.h>

#include "base/text.h"
#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {

void ApplyLaneArithmetic(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.LivenessOf(i) != Liveness::kUnknown) continue;
    const auto constant = input.project.constants.find(source.Text(i));
    if (constant == input.project.constants.end() || constant->second != 32) continue;
    const bool defines = source.Is(i - 1, "define") || (source.Is(i + 1, "=") && source.IsIdentifier(i - 1));
    const std::string name = LowerCase(source.Text(i));
    if (!defines || name.find("warp") == std::string::npos) continue;
    output->Find(source, i, FindingLevel::kNote, "lane-arithmetic",
                 fmt::format("'{}' fixes a warp at 32 lanes; {}", source.Text(i), WaveText(input.target)),
                 "port: teams of 32 stay; half of each wave's lanes belong to another team");
  }
}

}  // namespace portolan
