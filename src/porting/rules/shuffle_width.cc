// A shuffle's default width is the wave's: 64 lanes where CUDA has 32. An exchange that leaves its 32-lane team is then
// another one. Right all the same, and not reported as wrong: xor below 32 (it stays in the team), down (lane 0 of each
// team, which is what reductions read, gets the same value), up behind a guard on the lane, any with a width argument,
// what only the first 32 threads of a block do, and kernels launched with at most 32 threads a block. A value that may
// be the same in both teams (a parameter, what all threads read) is a warning.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {
namespace {

// Whether a comparison of the lane with the offset stands near: if (lane >= d) x += ..., or x = lane >= d ? ... .
bool IsGuarded(const SourceFile& source, size_t call) {
  constexpr size_t kBefore = 40;
  constexpr size_t kAfter = 60;
  const size_t begin = call > kBefore ? call - kBefore : 0;
  for (size_t i = begin; i < call + kAfter && i < source.size(); ++i) {
    if ((source.Is(i, ">") || source.Is(i, "<")) && !source.tokens()[i].in_directive) return true;
    if (source.Is(i, "if") && NamesLane(source, i, i + 8)) return true;
  }
  return false;
}

// Whether [begin, end) is a condition that only the first 32 threads of a block pass: warp_idx == 0, threadIdx.x < 32.
bool NamesFirstTeam(const SourceFile& source, size_t begin, size_t end) {
  bool first = false;
  for (size_t i = begin; i < end; ++i) {
    if (source.Is(i, "||")) return false;
    if (!source.IsIdentifier(i)) continue;
    const std::string name = LowerCase(source.Text(i));
    const bool equals = source.Is(i + 1, "==") || (source.Is(i + 1, "=") && source.Is(i + 2, "="));
    const size_t right = source.Is(i + 1, "==") ? i + 2 : i + 3;
    first = first || (name.find("warp") != std::string::npos && equals && source.Is(right, "0"));
    const bool thread = name == "tid" || name == "thread_id" || name == "threadid" ||
                        (name == "x" && i >= 2 && source.Is(i - 2, "threadIdx"));
    first = first || (thread && source.Is(i + 1, "<") && source.Is(i + 2, "32"));
  }
  return first;
}

// Whether a block around `i` has such a condition. Functions may be device code by a macro of another project's
// (CUTLASS_DEVICE), so that their beginning is not known.
bool RunsInFirstTeam(const SourceFile& source, size_t i) {
  constexpr size_t kLongest = 3000;  // tokens of a function
  const DeviceFunction* function = source.EnclosingDeviceFunction(i);
  const size_t begin = function != nullptr ? function->body_begin + 1 : std::max<size_t>(i, kLongest + 2) - kLongest;
  for (size_t at = i; at > begin; --at) {
    if (!source.Is(at - 1, "{") || source.Closing(at - 1) < i || !source.Is(at - 2, ")")) continue;
    size_t open = at - 2;
    while (open > begin && source.Closing(open) != at - 2) --open;
    if (source.Is(open - 1, "if") && NamesFirstTeam(source, open + 1, at - 2)) return true;
  }
  return false;
}

}  // namespace

void ApplyShuffleWidth(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !IsShuffle(source.Text(i)) || !source.Is(i + 1, "(")) continue;
    const std::string_view name = source.Text(i);
    if (!input.IsFreeName(i, name) || input.project.own_names.count(name) > 0) continue;
    const auto arguments = source.Arguments(i + 1);
    const size_t value = TakesMask(name) ? 1 : 0;
    if (arguments.size() != value + 2 || RunsInHalfAWave(input, i)) continue;  // a width is given, or not a call
    if (RunsInFirstTeam(source, i)) continue;
    if (source.tokens()[i].in_directive) continue;  // a macro: its uses decide
    const auto [begin, end] = arguments[value + 1];
    const std::string operand(source.Range(begin, end));
    const bool up = name.find("_up") != std::string_view::npos;
    const bool direct = name == "__shfl" || name == "__shfl_sync";
    const std::string repair = "port: shuffles with width 32";
    if (direct) {
      // lane / 128 and the like is often one value for several warps: who broadcasts it does not matter then.
      bool quotient = false;
      for (size_t t = arguments[value].first; t < arguments[value].second; ++t) {
        quotient = quotient || (source.Is(t, "/") && !source.Is(t + 1, "32"));
      }
      const bool differs = !quotient && DiffersByTeam(source, i, arguments[value].first, arguments[value].second);
      output->Find(source, i, differs ? FindingLevel::kError : FindingLevel::kWarning, "shuffle-width",
                   fmt::format("without a width, lane {} is one of all {} lanes: lanes 32 and up read another 32-lane "
                               "team{}; {}",
                               operand, input.target.wave_size, differs ? "" : ", which may hold another value",
                               WaveText(input.target)),
                   repair);
    } else if (up && !IsGuarded(source, i)) {
      output->Find(source, i, FindingLevel::kWarning, "shuffle-width",
                   fmt::format("without a width, the first lanes of an upper 32-lane team read the team below; {}",
                               WaveText(input.target)),
                   repair);
    }
  }
}

}  // namespace portolan
