#pragma once

#include <gtest/gtest.h>

#include <string>

#include "porting/target.h"

namespace portolan {

// The target of a test, from the repository's own data.
inline PortTarget TestTarget(const std::string& name = "gfx950", const std::string& rocm = "6.3") {
  static const auto catalogue = Catalogue::Load({"data"});
  EXPECT_TRUE(catalogue) << (catalogue ? "" : FormatError(catalogue.error()));
  if (!catalogue) return {};
  const auto target = FindPortTarget(*catalogue, name, rocm);
  EXPECT_TRUE(target) << (target ? "" : FormatError(target.error()));
  return target ? *target : PortTarget();
}

}  // namespace portolan
