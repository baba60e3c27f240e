// CDNA 3 and 4 have no image instructions: HIP's headers declare the texture functions unavailable there. Textures over
// linear and pitched memory are sampled by the compatibility header; arrays, surfaces and texture references are not.

#include "porting/rules/textures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

bool IsTextureFunction(std::string_view name) {
  constexpr std::array<std::string_view, 10> kEnds = {"",        "fetch",      "gather",      "Lod",  "Grad",
                                                      "Layered", "LayeredLod", "LayeredGrad", "read", "write"};
  for (const std::string_view prefix : {"tex1D", "tex2D", "tex3D", "texCubemap", "surf1D", "surf2D", "surf3D"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    return std::find(kEnds.begin(), kEnds.end(), name.substr(prefix.size())) != kEnds.end();
  }
  return false;
}

bool NeedsAnImage(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames = {
      "cudaMallocArray",         "cudaMalloc3DArray",      "cudaMallocMipmappedArray",
      "cudaCreateSurfaceObject", "cudaBindTexture",        "cudaBindTexture2D",
      "cudaBindTextureToArray",  "cudaBindSurfaceToArray", "cudaBindTextureToMipmappedArray"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

std::string SoftwareTexture(std::string_view name, const PortTarget& target) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {
      {{"tex1Dfetch", "portolan::tex1Dfetch"},
       {"tex1D", "portolan::tex1D"},
       {"tex2D", "portolan::tex2D"},
       {"cudaCreateTextureObject", "portolan::create_texture_object"},
       {"cudaDestroyTextureObject", "portolan::destroy_texture_object"}}};
  if (target.gfx.substr(0, 5) != "gfx94" && target.gfx.substr(0, 5) != "gfx95") return "";
  for (const auto& [cuda, ours] : kNames) {
    if (cuda == name) return std::string(ours);
  }
  return "";
}

void ApplyTextures(const RuleInput& input, RuleOutput* output) {
  if (SoftwareTexture("tex2D", input.target).empty()) return;
  const SourceFile& source = input.source;
  const std::string no_images = fmt::format("{} has no image instructions", input.target.gfx);
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i) || !input.IsFreeName(i, source.Text(i))) continue;
    if (i > 1 && source.Is(i - 1, "::") && source.IsIdentifier(i - 2)) continue;  // of another namespace
    const std::string_view name = source.Text(i);
    if (input.project.own_names.count(name) > 0 || source.LivenessOf(i) == Liveness::kHipOnly) continue;
    if (NeedsAnImage(name) && source.Is(i + 1, "(")) {
      output->Find(source, i, FindingLevel::kError, "texture",
                   fmt::format("{}: {}, and HIP answers with an error", name, no_images),
                   "keep the data in linear or pitched memory");
      continue;
    }
    const std::string ours = SoftwareTexture(name, input.target);
    const bool function = IsTextureFunction(name) && (source.Is(i + 1, "(") || source.Is(i + 1, "<"));
    if (function && source.EnclosingDeviceFunction(i) == nullptr) continue;
    if (!ours.empty() && (function || source.Is(i + 1, "("))) {
      if (function) {
        output->Find(source, i, FindingLevel::kError, "texture", fmt::format("{}: {}", name, no_images),
                     fmt::format("port: {} samples by arithmetic", ours));
      }
      output->Replace(source, i, ours);
      output->compat.insert("texture");
    } else if (function) {
      output->Find(source, i, FindingLevel::kError, "texture", fmt::format("{}: {}", name, no_images),
                   "read the array from global memory");
    }
  }
}

}  // namespace portolan
