// CUDA's API names become HIP's. Names that the project declares itself stay; so does what stands in code that only
// CUDA compiles.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyRenameApi(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i)) continue;
    const std::string_view name = source.Text(i);
    if (name.size() < 4) continue;
    const NameMapping mapping = MapName(name);
    if (mapping.fate == NameFate::kNotVendor || input.project.own_names.count(name) > 0) continue;
    if (i > 0 && (source.Is(i - 1, ".") || source.Is(i - 1, "->"))) continue;  // a member, not an API name
    if (mapping.fate == NameFate::kUnavailable) {
      output->Find(source, i, FindingLevel::kError, "unavailable-api", fmt::format("HIP has no '{}'", name),
                   mapping.text);
      continue;
    }
    const bool of_hip = mapping.text.compare(0, 3, "hip") == 0 || mapping.text.compare(0, 3, "HIP") == 0;
    if (of_hip && input.declarations.found() && !input.declarations.Has(mapping.text)) {
      output->Find(source, i, FindingLevel::kError, "unavailable-api",
                   fmt::format("the installed HIP headers declare no '{}' for '{}'", mapping.text, name),
                   "left as it is; replace it by hand");
      continue;
    }
    if ((name == "cudaGetErrorString" || name == "cudaGetErrorName") && source.EnclosingDeviceFunction(i) != nullptr) {
      output->compat.insert("device_runtime");
    }
    // struct cudaDeviceProp: the typedef that HIP has instead takes no struct.
    const bool elaborated = i > 0 && source.Is(i - 1, "struct") && mapping.text.size() > 2 &&
                            mapping.text.compare(mapping.text.size() - 2, 2, "_t") == 0;
    if (elaborated) {
      output->edits.push_back({source.tokens()[i - 1].begin, source.tokens()[i].end, mapping.text});
    } else {
      output->Replace(source, i, mapping.text);
    }
  }
}

}  // namespace portolan
