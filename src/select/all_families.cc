#include "select/all_families.h"

#include <array>

#include "select/family_aiter.h"
#include "select/family_cpu.h"
#include "select/family_cublaslt.h"
#include "select/family_tensile.h"
#include "select/family_triton.h"

namespace portolan {

std::span<const FamilyEntry* const> AllFamilies() {
  static const std::array<const FamilyEntry*, 5> kFamilies = {
      &kTritonFamily, &kCublasLtFamily, &kTensileFamily, &kAiterFamily, &kCpuFamily,
  };
  return kFamilies;
}

}  // namespace portolan
