#include "select/all_families.h"

#include <array>

#include "select/family_aiter.h"
#include "select/family_cublaslt.h"
#include "select/family_tensile.h"
#include "select/family_triton.h"

namespace portolan {

std::span<const FamilyEntry* const> AllFamilies() {
  static const std::array<const FamilyEntry*, 4> kFamilies = {
      &kTritonFamily,
      &kCublasLtFamily,
      &kTensileFamily,
      &kAiterFamily,
  };
  return kFamilies;
}

}  // namespace portolan
