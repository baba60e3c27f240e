#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace portolan {

enum class NameFate : uint8_t {
  kNotVendor,   // not a name of CUDA or its libraries
  kMapped,      // has the HIP name given
  kUnavailable  // HIP has nothing that does this; `text` says what to do instead
};

struct NameMapping {
  NameFate fate = NameFate::kNotVendor;
  std::string text;
};

// The HIP name of a type, function, enumerator or macro of the CUDA runtime, driver or libraries. Exceptions come from
// names.inc; everything else follows the vendor's own naming rule (cudaX -> hipX, cublasX -> hipblasX, CUDA_R_X ->
// HIP_R_X ...), which is right for a name if and only if HIP declares the result: HipDeclarations knows.
NameMapping MapName(std::string_view cuda);

// hipBLAS of ROCm 6 has two interfaces; cuBLAS's types of complex numbers and of data are those of the second. The name
// that a function has there whatever was included first (hipblasCgemm -> hipblasCgemm_v2); "" for one that has no
// second form. ROCm 7 has the second interface alone, under the plain names.
std::string HipblasSecondName(std::string_view hip);

// The HIP header of a CUDA header ("cuda_fp16.h" -> "hip/hip_fp16.h"); "" when it needs none (its contents come with
// the runtime header); kNotVendor for any other.
NameMapping MapHeader(std::string_view header);

// Identifiers that the HIP headers below a ROCm installation's include folder declare.
class HipDeclarations {
 public:
  // Reads `include_dir`/{hip,hipblas,...}; found() is false when there is no hip/hip_runtime_api.h below it.
  static HipDeclarations Read(const std::string& include_dir);
  bool found() const { return !names_.empty(); }
  bool Has(std::string_view name) const { return names_.count(name) > 0; }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace portolan
