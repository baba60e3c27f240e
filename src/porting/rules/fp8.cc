// 8-bit floats. gfx942 computes in the FNUZ forms (E4M3: exponent bias 8, largest 240, no infinity, no minus zero),
// gfx950 and later in the OCP forms that NVIDIA has (E4M3: bias 7, largest 448).

#include "porting/rules/fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "porting/rules/rules.h"

namespace portolan {

namespace {

bool ComputesFnuz(const PortTarget& target) { return target.gfx.substr(0, 5) == "gfx94"; }

}  // namespace

std::string HipFp8Name(std::string_view cuda, const PortTarget& target) {
  constexpr std::array<std::string_view, 8> kNames = {"__nv_fp8_e4m3",   "__nv_fp8_e5m2",   "__nv_fp8x2_e4m3",
                                                      "__nv_fp8x2_e5m2", "__nv_fp8x4_e4m3", "__nv_fp8x4_e5m2",
                                                      "__NV_E4M3",       "__NV_E5M2"};
  if (std::find(kNames.begin(), kNames.end(), cuda) == kNames.end()) return "";
  const bool upper = cuda[2] == 'N';
  const std::string stem = (upper ? "__HIP" : "__hip") + std::string(cuda.substr(4));
  return stem + (!ComputesFnuz(target) ? "" : upper ? "_FNUZ" : "_fnuz");
}

void ApplyFp8(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !input.IsFreeName(i, source.Text(i))) continue;
    const std::string name = HipFp8Name(source.Text(i), input.target);
    if (name.empty()) continue;
    output->Replace(source, i, name);
    if (ComputesFnuz(input.target)) {
      output->Find(source, i, FindingLevel::kError, "fp8",
                   fmt::format("{} computes 8-bit floats in the FNUZ form: E4M3 ends at 240 where {} ends at 448, and "
                               "the bits mean other values",
                               input.target.gfx, source.Text(i)),
                   "port: the FNUZ type; rescale, and convert stored data");
    }
  }
}

}  // namespace portolan
