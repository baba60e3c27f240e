#include "porting/rules/wave.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace portolan {
namespace {

// The { of the function around token `at`. Functions may be device code by a macro of another project's
// (CUTLASS_DEVICE), so that only their shape tells; 0 when there is none.
size_t FunctionBegin(const SourceFile& source, size_t at) {
  constexpr size_t kLongest = 6000;  // tokens of a function
  if (const DeviceFunction* function = source.EnclosingDeviceFunction(at)) return function->body_begin;
  size_t begin = 0;
  for (size_t open = at; open > 1 && open + kLongest > at; --open) {
    if (!source.Is(open, "{") || source.Closing(open) < at) continue;
    if (source.Is(open - 1, ")") || source.Is(open - 1, "const") || source.Is(open - 1, "noexcept")) begin = open;
  }
  return begin;
}

// Whether token `i` is the modulus of a team, % 32 or & 31, behind the thread's index: what is left is the lane.
bool IsLaneOfTeam(const SourceFile& source, size_t i) {
  while (source.Is(i, ".") || source.Is(i, "x") || source.Is(i, ")")) ++i;
  const bool remainder = source.Is(i, "%") && (source.Is(i + 1, "32") || source.Is(i + 1, "warpSize"));
  return remainder || (source.Is(i, "&") && (source.Is(i + 1, "31") || source.Is(i + 1, "0x1f")));
}

bool TellsTeamsApart(const SourceFile& source, size_t i) {
  const std::string name = LowerCase(source.Text(i));
  if (name == "threadidx" || name == "tid" || name == "thread_id" || name == "thread_idx") {
    return !IsLaneOfTeam(source, i + 1);
  }
  if (name.find("warpsize") != std::string::npos || name.find("warp_size") != std::string::npos) return false;
  return name.find("warp") != std::string::npos || name == "wid" || name.substr(0, 6) == "atomic" || IsShuffle(name) ||
         name.substr(0, 3) == "cub";
}

// One past the last token of the expression that begins at `i`: up to the ; or , or ) that ends it.
size_t ExpressionEnd(const SourceFile& source, size_t i, size_t limit) {
  for (; i < limit; ++i) {
    if (source.Is(i, "(") || source.Is(i, "[") || source.Is(i, "{")) {
      i = std::min(source.Closing(i), limit);
    } else if (source.Is(i, ";") || source.Is(i, ",") || source.Is(i, ")") || source.Is(i, "}")) {
      return i;
    }
  }
  return limit;
}

}  // namespace

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

bool RunsInOneThread(const SourceFile& source, size_t i) {
  const size_t function = FunctionBegin(source, i);
  const auto is_one = [&source](size_t close) {
    size_t open = close;
    while (open > 0 && source.Closing(open) != close) --open;
    if (open == 0 || !source.Is(open - 1, "if") || !NamesLane(source, open, close)) return false;
    bool equal = false;
    for (size_t t = open + 1; t < close; ++t) {
      if (source.Is(t, "||")) return false;
      equal = equal || (source.Is(t, "=") && source.Is(t + 1, "=") && !source.Is(t - 1, "!"));
    }
    return equal;
  };
  if (i > 0 && source.Is(i - 1, ")") && is_one(i - 1)) return true;
  for (size_t open = i; open > function + 1; --open) {
    if (source.Is(open, "{") && source.Closing(open) > i && source.Is(open - 1, ")") && is_one(open - 1)) return true;
  }
  return false;
}

bool DiffersByTeam(const SourceFile& source, size_t at, size_t begin, size_t end) {
  const size_t function = FunctionBegin(source, at);
  std::set<std::string_view> names;
  std::vector<std::pair<size_t, size_t>> todo = {{begin, end}};
  while (!todo.empty()) {
    const auto [first, last] = todo.back();
    todo.pop_back();
    for (size_t i = first; i < last; ++i) {
      if (!source.IsIdentifier(i)) continue;
      if (TellsTeamsApart(source, i)) return true;
      const std::string_view name = source.Text(i);
      if (source.Is(i + 1, "(") || source.Is(i - 1, ".") || source.Is(i - 1, "->") || !names.insert(name).second)
        continue;
      for (size_t t = function + 1; function > 0 && t < at; ++t) {
        if (!source.Is(t, name) || source.Is(t - 1, ".") || source.Is(t - 1, "->")) continue;
        size_t sign = t + 1;  // = and += and <<=, not ==
        while (source.Is(sign, "[") || source.Is(sign, "(")) sign = source.Closing(sign) + 1;
        while (sign < t + 4 && std::string_view("+-*/%&|^<<>>").find(source.Text(sign)) != std::string_view::npos)
          ++sign;
        if (!source.Is(sign, "=") || source.Is(sign + 1, "=")) continue;
        // The brackets too: shared[warp] is the team's own.
        todo.emplace_back(t + 1, ExpressionEnd(source, sign + 1, at));
      }
    }
  }
  return false;
}

}  // namespace portolan
