// CUDA's API names become HIP's. Names that the project declares itself stay; so does what stands in code that only
// CUDA compiles.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

// cublas.h declares functions without a handle unless cublas_v2.h came first; some include it and use handles. In a
// port hipBLAS's header stands in its place, and what is left of cuBLAS is what had no handle.
bool UsesLegacyBlas(const SourceFile& source) {
  bool old_header = false;
  for (size_t i = 1; i < source.size(); ++i) {
    const std::string_view text = source.Text(i);
    if (source.Is(i - 1, "include")) {
      if (text.find("cublas_v2.h") != std::string_view::npos) return false;
      for (const std::string_view header : {"cublas.h", "hipblas.h", "hipblas/hipblas.h"}) {
        old_header = old_header || (text.size() > 2 && text.substr(1, text.size() - 2) == header);
      }
    }
    for (const std::string_view handle : {"cublasHandle_t", "cublasCreate", "hipblasHandle_t", "hipblasCreate"}) {
      if (text == handle) return false;
    }
  }
  return old_header;
}

// A function that computes (cublasSgemm, cublasIdamax), or of the library's own life and errors.
bool IsLegacyBlas(std::string_view name) {
  constexpr std::string_view kPrefix = "cublas";
  if (name.substr(0, kPrefix.size()) != kPrefix || name.size() < kPrefix.size() + 3) return false;
  for (const std::string_view own :
       {"cublasInit", "cublasShutdown", "cublasAlloc", "cublasFree", "cublasGetError", "cublasSetKernelStream"}) {
    if (name == own) return true;
  }
  const char type = name[kPrefix.size()];
  const char next = name[kPrefix.size() + 1];
  return std::string_view("SDCZI").find(type) != std::string_view::npos && next >= 'a' && next <= 'z' &&
         name.substr(0, 9) != "cublasSet" && name.substr(0, 12) != "cublasStatus" &&
         name.substr(0, 10) != "cublasSide" && name.substr(0, 10) != "cublasDiag" && name.substr(0, 10) != "cublasData";
}

}  // namespace

void ApplyRenameApi(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  const bool legacy_blas = UsesLegacyBlas(source);
  const bool two_blas = !input.target.RocmBefore(6, 0) && input.target.RocmBefore(7, 0);
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i)) continue;
    const std::string_view name = source.Text(i);
    if (name.size() < 4) continue;
    NameMapping mapping = MapName(name);
    if (mapping.fate == NameFate::kNotVendor || input.project.own_names.count(name) > 0) continue;
    if (i > 0 && (source.Is(i - 1, ".") || source.Is(i - 1, "->"))) continue;  // a member, not an API name
    if (mapping.fate == NameFate::kUnavailable) {
      output->Find(source, i, FindingLevel::kError, "unavailable-api", fmt::format("HIP has no '{}'", name),
                   mapping.text);
      continue;
    }
    if (legacy_blas && IsLegacyBlas(name)) {
      output->Find(source, i, FindingLevel::kError, "unavailable-api",
                   fmt::format("'{}' is of cuBLAS's old interface without a handle, which hipBLAS has not", name),
                   "left as it is; call the function of cublas_v2.h with a handle");
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
    if (const std::string second = two_blas ? HipblasSecondName(mapping.text) : ""; !second.empty()) {
      if (!input.declarations.found() || input.declarations.Has(second)) mapping.text = second;
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
