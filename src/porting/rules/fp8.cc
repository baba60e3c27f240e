// 8-bit floats. gfx942 computes in the FNUZ forms (E4M3: exponent bias 8, largest 240, no infinity, no minus zero),
// gfx950 and later in the OCP forms that NVIDIA has (E4M3: bias 7, largest 448).

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyFp8(const RuleInput& input, RuleOutput* output) {
  struct Name {
    std::string_view cuda;
    std::string_view hip;
  };
  constexpr std::array<Name, 8> kNames = {{{"__nv_fp8_e4m3", "__hip_fp8_e4m3"},
                                           {"__nv_fp8_e5m2", "__hip_fp8_e5m2"},
                                           {"__nv_fp8x2_e4m3", "__hip_fp8x2_e4m3"},
                                           {"__nv_fp8x2_e5m2", "__hip_fp8x2_e5m2"},
                                           {"__nv_fp8x4_e4m3", "__hip_fp8x4_e4m3"},
                                           {"__nv_fp8x4_e5m2", "__hip_fp8x4_e5m2"},
                                           {"__NV_E4M3", "__HIP_E4M3"},
                                           {"__NV_E5M2", "__HIP_E5M2"}}};
  const bool fnuz = input.target.gfx.substr(0, 5) == "gfx94";
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || (source.Text(i).substr(0, 5) != "__nv_" && source.Text(i).substr(0, 5) != "__NV_")) {
      continue;
    }
    for (const Name& name : kNames) {
      if (!input.IsFreeName(i, name.cuda)) continue;
      const bool upper = name.hip[2] == 'H';
      output->Replace(source, i, std::string(name.hip) + (!fnuz ? "" : upper ? "_FNUZ" : "_fnuz"));
      if (fnuz) {
        output->Find(
            source, i, FindingLevel::kError, "fp8",
            fmt::format("{} computes 8-bit floats in the FNUZ form: E4M3 ends at 240 where {} ends at 448, and "
                        "the bits mean other values",
                        input.target.gfx, name.cuda),
            "port: the FNUZ type; rescale, and convert stored data");
      }
    }
  }
}

}  // namespace portolan
