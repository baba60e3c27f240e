// Warp-synchronous builtins. CUDA's have 32-bit masks and act on 32 lanes. HIP before 6.2 lacks them, 6.2 to 6.4 hide
// them behind a macro, 7 refuses masks that are not 64 bits wide; and all of them act on the whole wave. The port calls
// equivalents in the compatibility header that act on 32-lane halves of a wave, so that masks, lane numbers and
// __popc(ballot) keep their meaning. Builtins without _sync (CUDA before 9) exist in HIP and act on 64 lanes.

#include <fmt/format.h>

#include "porting/compat.h"
#include "porting/rules/rules.h"

namespace portolan {
namespace {

bool IsWarpPart(std::string_view part) { return part.substr(0, 5) == "warp_"; }

bool IsWideType(std::string_view word) { return word == "uint64_t" || word == "int64_t" || word == "long"; }

// Whether the call's mask is 64 bits wide: by its spelling, or by a declaration of its name in this file.
bool HasWideMask(const RuleInput& input, size_t open) {
  const SourceFile& source = input.source;
  const auto arguments = source.Arguments(open);
  if (arguments.empty()) return false;
  const auto [begin, end] = arguments[0];
  for (size_t i = begin; i < end; ++i) {
    const std::string_view text = source.Text(i);
    unsigned long long value = 0;
    if (source.tokens()[i].kind == TokenKind::kNumber && ParseIntegerLiteral(text, &value) &&
        (value > 0xffffffffULL || text.find_first_of("lL") != std::string_view::npos)) {
      return true;
    }
    if (IsWideType(text) || text == "UINT64_MAX" || text == "ULLONG_MAX") return true;
  }
  if (end != begin + 1 || !source.IsIdentifier(begin)) return false;
  for (size_t i = 1; i < source.size(); ++i) {
    if (source.Text(i) == source.Text(begin) && IsWideType(source.Text(i - 1))) return true;
    const bool defines = source.Is(i - 1, "define") && source.Text(i) == source.Text(begin);
    if (defines &&
        (source.Text(i + 1).find_first_of("lL") != std::string_view::npos || source.Is(i + 1, "UINT64_MAX"))) {
      return true;
    }
  }
  return false;
}

// A file written for HIP already: what it calls, it means.
bool IncludesHip(const SourceFile& source) {
  for (size_t i = 0; i + 2 < source.size(); ++i) {
    if (source.tokens()[i].kind == TokenKind::kHash && source.Is(i + 1, "include") &&
        source.Text(i + 2).find("hip/") == 1) {
      return true;
    }
  }
  return false;
}

bool IsSync(std::string_view name) { return name.size() > 5 && name.substr(name.size() - 5) == "_sync"; }

}  // namespace

void ApplyWarpSync(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  const bool hip_file = IncludesHip(source);
  const std::string width = fmt::format("{} waves have {} lanes", input.target.gfx, input.target.wave_size);
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.Text(i).substr(0, 2) != "__" || !source.Is(i + 1, "(")) continue;
    const std::string_view name = source.Text(i);
    const std::string_view part = CompatPartOf(name);
    if (!IsWarpPart(part) || !input.IsFreeName(i, name) || input.project.own_names.count(name) > 0) continue;
    if (source.LivenessOf(i) == Liveness::kHipOnly) continue;
    const bool sync = IsSync(name) || name == "__syncwarp" || name == "__activemask";
    if (!sync && hip_file) continue;
    if (!sync) {
      // A shuffle with an explicit width means the same in HIP.
      const bool vote = name == "__ballot" || name == "__any" || name == "__all";
      if (!vote && source.Arguments(i + 1).size() >= 3) continue;
    } else if (name == "__syncwarp") {
      if (input.target.RocmBefore(7, 0)) {
        output->Find(source, i, FindingLevel::kError, "warp-sync",
                     fmt::format("ROCm before 7 declares no __syncwarp; {}", width),
                     "port: calls portolan::syncwarp, a fence and a wave barrier");
      }
    } else if (name == "__activemask") {
      output->Find(source, i, FindingLevel::kWarning, "warp-sync",
                   fmt::format("__activemask returns {} bits here, and lanes that diverged are not in it; {}",
                               input.target.wave_size, width),
                   "port: calls portolan::activemask, the mask of the 32-lane half");
    } else if (!HasWideMask(input, i + 1)) {
      const char* why = input.target.RocmBefore(6, 2)   ? "is not declared before ROCm 6.2"
                        : input.target.RocmBefore(7, 0) ? "is declared by ROCm 6 only on request, and then refuses a "
                                                          "32-bit mask"
                                                        : "refuses a 32-bit mask";
      output->Find(source, i, FindingLevel::kError, "warp-sync", fmt::format("{} {}; {}", name, why, width),
                   fmt::format("port: calls portolan::{}, which acts on 32-lane halves of a wave", name.substr(2)));
    }
    output->Replace(source, i, "portolan::" + std::string(name.substr(2)));
    output->compat.insert(std::string(part));
  }
}

}  // namespace portolan
