// warpSize is 64 on the target, and from ROCm 7 no constant. Device code keeps teams of 32, so it becomes the
// constant portolan::kWarpSize. A host's query of the device property stays, and is reported: host code that sizes
// something by it speaks of 64.

#include <fmt/format.h>

#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {
namespace {

// Whether a constant is required where token `i` stands: an array bound or a template argument.
bool NeedsConstant(const SourceFile& source, size_t i) {
  constexpr size_t kNear = 12;
  int square = 0;
  for (size_t back = i; back > 0 && i - back < kNear; --back) {
    const std::string_view text = source.Text(back - 1);
    if (text == ";" || text == "{" || text == "}" || text == "(") return false;
    if (text == "]") ++square;
    if (text == "[" && --square < 0) {
      // TYPE name[... : a declaration, when two names stand before the bracket.
      return back >= 3 && source.IsIdentifier(back - 2) && source.IsIdentifier(back - 3) &&
             !source.Is(back - 3, "return");
    }
    if (text == "<" && source.IsIdentifier(back - 2))
      return source.ClosingAngle(back - 1) > i && source.ClosingAngle(back - 1) < source.size();
  }
  return false;
}

// Whether token `i` is in a device function: its body, or its head (int width = warpSize).
bool InDeviceFunction(const SourceFile& source, size_t i) {
  for (const DeviceFunction& function : source.device_functions()) {
    if (function.name_token < i && i < function.body_end) return true;
  }
  return false;
}

}  // namespace

void ApplyWarpSize(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  int told = 0;  // line of the last note: one is enough
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i, "warpSize") || input.IsDead(i)) continue;
    if (source.LivenessOf(i) == Liveness::kHipOnly) continue;
    if (source.Is(i - 1, ".") || source.Is(i - 1, "->")) {
      output->Find(source, i, FindingLevel::kNote, "warp-size",
                   fmt::format("this reads {} on the target, where device code that is ported keeps teams of 32",
                               input.target.wave_size),
                   "look at what is sized by it");
      continue;
    }
    if (input.project.own_names.count("warpSize") > 0 || source.Is(i - 1, "::")) continue;
    if (!InDeviceFunction(source, i) && !source.tokens()[i].in_directive) continue;
    if (NeedsConstant(source, i)) {
      output->Find(source, i, input.target.RocmBefore(7, 0) ? FindingLevel::kWarning : FindingLevel::kError,
                   "warp-size",
                   fmt::format("warpSize is {} here, and from ROCm 7 no constant expression", input.target.wave_size),
                   "port: portolan::kWarpSize, the constant 32");
    } else if (const int line = source.PositionOf(source.tokens()[i].begin).line; line != told) {
      told = line;
      output->Find(source, i, FindingLevel::kNote, "warp-size",
                   fmt::format("warpSize is {} here", input.target.wave_size),
                   "port: portolan::kWarpSize, the constant 32, as what it is used with");
    }
    output->Replace(source, i, "portolan::kWarpSize");
    output->compat.insert("warp_size");
  }
}

}  // namespace portolan
