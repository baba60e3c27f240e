// CDNA 3 and 4 have no image instructions: HIP's headers declare the texture functions unavailable there.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

bool IsTextureFunction(std::string_view name) {
  for (const std::string_view prefix : {"tex1D", "tex2D", "tex3D", "texCubemap", "surf1D", "surf2D", "surf3D"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

bool LacksImages(std::string_view gfx) { return gfx.substr(0, 5) == "gfx94" || gfx.substr(0, 5) == "gfx95"; }

}  // namespace

void ApplyTextures(const RuleInput& input, RuleOutput* output) {
  if (!LacksImages(input.target.gfx)) return;
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !IsTextureFunction(source.Text(i)) || input.IsDead(i)) continue;
    if (!input.IsFreeName(i, source.Text(i)) || (!source.Is(i + 1, "(") && !source.Is(i + 1, "<"))) continue;
    if (source.EnclosingDeviceFunction(i) == nullptr) continue;
    output->Find(source, i, FindingLevel::kError, "texture",
                 fmt::format("{}: {} has no image instructions", source.Text(i), input.target.gfx),
                 "read the array from global memory");
  }
}

}  // namespace portolan
