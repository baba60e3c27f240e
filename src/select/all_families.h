#pragma once

#include <span>

#include "select/family.h"

namespace portolan {

// Every registered family: one line in all_families.cc each.
std::span<const FamilyEntry* const> AllFamilies();

}  // namespace portolan
