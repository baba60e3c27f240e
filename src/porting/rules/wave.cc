#include "porting/rules/wave.h"

#include <fmt/format.h>

#include "base/text.h"

namespace portolan {

std::string WaveText(const PortTarget& target) {
  return fmt::format("{} ({}) has {} lanes a wave", target.gfx, target.accelerator_name, target.wave_size);
}

bool RunsInHalfAWave(const RuleInput& input, size_t i) {
  const DeviceFunction* function = input.source.EnclosingDeviceFunction(i);
  if (function == nullptr || !function->is_kernel) return false;
  const auto launches = input.project.launched_blocks.find(function->name);
  if (launches == input.project.launched_blocks.end()) return false;
  for (const long long threads : launches->second) {
    if (threads <= 0 || threads > 32) return false;
  }
  return true;
}

bool IsBallot(std::string_view name) { return name == "__ballot_sync" || name == "__ballot"; }

bool IsShuffle(std::string_view name) {
  if (name.substr(0, 6) != "__shfl") return false;
  const std::string_view rest = name.substr(6);
  return rest.empty() || rest == "_sync" || rest == "_up" || rest == "_down" || rest == "_xor" || rest == "_up_sync" ||
         rest == "_down_sync" || rest == "_xor_sync";
}

bool NamesLane(const SourceFile& source, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (!source.IsIdentifier(i)) continue;
    const std::string name = LowerCase(source.Text(i));
    if (name.find("lane") != std::string::npos || name == "threadidx" || name == "tid" || name == "laneid") return true;
  }
  return false;
}

}  // namespace portolan
