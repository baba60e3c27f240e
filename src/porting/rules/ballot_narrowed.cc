// HIP's __ballot has one bit for each of the wave's lanes. Kept in 32 bits it loses the upper half without a word, and
// the 32-bit __popc, __ffs and __clz lose it too. Repaired by warp-sync, whose ballot is that of a 32-lane half.

#include <fmt/format.h>

#include <array>
#include <map>

#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {
namespace {

bool IsNarrowType(std::string_view name) {
  return name == "unsigned" || name == "int" || name == "uint" || name == "uint32_t" || name == "int32_t" ||
         name == "u32" || name == "uint32";
}

// Whether the declaration whose name is token `name` has a 32-bit integer type; `long` anywhere says no.
bool IsDeclaredNarrow(const SourceFile& source, size_t name) {
  bool narrow = false;
  for (size_t i = name; i > 0 && name - i < 5; --i) {
    const std::string_view word = source.Text(i - 1);
    if (word == "long" || word == "*" || word == "uint64_t" || word == "auto") return false;
    if (!source.IsIdentifier(i - 1)) break;
    narrow = narrow || IsNarrowType(word);
  }
  return narrow;
}

bool IsCounter(std::string_view name) {
  return name == "__popc" || name == "__ffs" || name == "__clz" || name == "__brev" || name == "__builtin_popcount" ||
         name == "__builtin_ffs" || name == "__builtin_clz" || name == "__builtin_ctz";
}

// A call's first token; 0 when `open` is not the ( of a named call.
size_t CallName(const SourceFile& source, size_t open) {
  return open > 0 && source.IsIdentifier(open - 1) ? open - 1 : 0;
}

}  // namespace

void ApplyBallotNarrowed(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  const std::string repair = "port: portolan::ballot_sync returns the 32 bits of the lane's own half";
  const std::string wave = WaveText(input.target);
  struct Narrow {
    size_t until;   // end of the function in which the name stands
    size_t ballot;  // the call
  };
  std::map<std::string_view, Narrow> narrow;      // variables that hold a ballot in 32 bits
  std::map<std::string_view, size_t> declared32;  // 32-bit variables of the function at hand, by name: its end
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i)) continue;
    const std::string_view name = source.Text(i);
    const DeviceFunction* function = source.EnclosingDeviceFunction(i);
    if (function == nullptr) continue;
    if (IsDeclaredNarrow(source, i) && (source.Is(i + 1, ";") || source.Is(i + 1, "=") || source.Is(i + 1, ","))) {
      declared32[name] = function->body_end;
    }
    if (IsBallot(name) && source.Is(i + 1, "(") && input.IsFreeName(i, name) &&
        input.project.own_names.count(name) == 0 && !RunsInHalfAWave(input, i)) {
      size_t before = i - 1;
      while (before > 0 && source.Is(before, "(") && CallName(source, before) == 0) --before;
      const size_t call = source.Is(before, "(") ? CallName(source, before) : 0;
      if (call != 0 && IsCounter(source.Text(call))) {
        output->Find(
            source, call, FindingLevel::kError, "ballot-narrowed",
            fmt::format("{} counts 32 bits of a ballot of {}; {}", source.Text(call), input.target.wave_size, wave),
            repair);
      } else if (source.Is(before, "=") && source.IsIdentifier(before - 1)) {
        const std::string_view variable = source.Text(before - 1);
        const auto known = declared32.find(variable);
        if (known != declared32.end() && known->second == function->body_end) {
          output->Find(source, i, FindingLevel::kError, "ballot-narrowed",
                       fmt::format("'{}' has 32 bits, the ballot {}: lanes 32 and up are lost; {}", variable,
                                   input.target.wave_size, wave),
                       repair);
          narrow[variable] = {function->body_end, i};
        }
      } else if (source.Is(before, "return")) {
        size_t type = function->name_token;
        // A head of its own for each build: the type may be of CUDA's.
        if (IsDeclaredNarrow(source, type) && type > 0 && !input.IsDead(type - 1)) {
          output->Find(
              source, i, FindingLevel::kError, "ballot-narrowed",
              fmt::format("'{}' returns 32 bits of a ballot of {}; {}", function->name, input.target.wave_size, wave),
              repair);
        }
      }
    }
    // 1 << lane, applied to a ballot: beyond bit 31 the shift has no meaning.
    if (name == "__popc" || IsCounter(name)) {
      if (!source.Is(i + 1, "(")) continue;
      const size_t close = source.Closing(i + 1);
      for (size_t t = i + 2; t < close && t < i + 40; ++t) {
        const auto mask = source.IsIdentifier(t) ? narrow.find(source.Text(t)) : narrow.end();
        if (mask == narrow.end() || mask->second.until != function->body_end) continue;
        bool shifted = false;
        for (size_t s = i + 2; s < close; ++s) shifted = shifted || source.Is(s, "<<");
        if (shifted) {
          output->Find(source, i, FindingLevel::kError, "lane-mask",
                       fmt::format("a 32-bit shift cannot make the mask of lanes 32 and up; {}", wave), repair);
        }
        break;
      }
    }
  }
}

}  // namespace portolan
