// A name such as WARP_SIZE with the value 32, lane or warp numbers made with 31, 32 or 5, and masks of a lane's bit.
// The port keeps teams of 32, for which these are right; by themselves they only tell where a 64-lane version begins.

#include <fmt/format.h>

#include "base/text.h"
#include "porting/project.h"
#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {
namespace {

// threadIdx.x, tid, lane_id ... : the last token is `i`.
bool IsThreadNumber(const SourceFile& source, size_t i) {
  if (source.Is(i, "x")) return i >= 2 && source.Is(i - 1, ".") && source.Is(i - 2, "threadIdx");
  const std::string name = LowerCase(source.Text(i));
  return name == "tid" || name == "thread_id" || name == "threadid" || name.substr(0, 4) == "lane";
}

// % 32, / 32, & 31, & 0x1f or >> 5 from token `i` on.
bool DividesByAWarp(const SourceFile& source, size_t i) {
  unsigned long long value = 0;
  const size_t number = source.Is(i, ">") && source.Is(i + 1, ">") ? i + 2 : i + 1;
  if (!ParseIntegerLiteral(source.Text(number), &value)) return false;
  if (source.Is(i, "%") || source.Is(i, "/")) return value == 32;
  return source.Is(i, "&") ? value == 31 : number == i + 2 && value == 5;
}

// 1 << lane, 1u << (lane_id): token `i` is the lane's name.
bool IsShiftedBy(const SourceFile& source, size_t i) {
  const size_t shift = source.Is(i - 1, "(") ? i - 2 : i - 1;
  unsigned long long value = 0;
  return LowerCase(source.Text(i)).substr(0, 4) == "lane" && shift > 0 && source.Is(shift, "<<") &&
         ParseIntegerLiteral(source.Text(shift - 1), &value) && value == 1 &&
         source.Text(shift - 1).find_first_of("lL") == std::string_view::npos;
}

}  // namespace

void ApplyLaneArithmetic(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.LivenessOf(i) != Liveness::kUnknown) continue;
    if (source.EnclosingDeviceFunction(i) != nullptr) {
      const bool divides = IsThreadNumber(source, i) && DividesByAWarp(source, i + 1);
      if (divides || IsShiftedBy(source, i)) {
        output->Find(source, i, FindingLevel::kNote, "lane-arithmetic",
                     fmt::format("{} 32 lanes; {}", divides ? "a number of a warp or lane of" : "a mask of",
                                 WaveText(input.target)),
                     "port: teams of 32 stay, for which this is right");
      }
    }
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
