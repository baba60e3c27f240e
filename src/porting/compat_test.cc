#include "porting/compat.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "porting/lexer.h"

namespace portolan {
namespace {

TEST(CompatHeader, BringsWhatAPartNeeds) {
  const std::string header = CompatHeader({"warp_reduce"});
  EXPECT_NE(header.find("shfl("), std::string::npos);
  EXPECT_NE(header.find("reduce_add_sync"), std::string::npos);
  EXPECT_LT(header.find("// Part: warp_shuffle"), header.find("// Part: warp_reduce"));
  EXPECT_EQ(header.find("syncwarp"), std::string::npos);
}

TEST(CompatHeader, NamesItsParts) {
  EXPECT_EQ(PartsOfCompatHeader(CompatHeader(CompatParts())), CompatParts());
  EXPECT_TRUE(PartsOfCompatHeader("// Part: unknown\n").empty());
  EXPECT_TRUE(PartsOfCompatHeader("").empty());
}

TEST(CompatHeader, IsBalancedAndPlain) {
  const std::string header = CompatHeader(CompatParts());
  for (const char* pair : {"()", "{}", "[]"}) {
    EXPECT_EQ(std::count(header.begin(), header.end(), pair[0]), std::count(header.begin(), header.end(), pair[1]));
  }
  EXPECT_EQ(header.find("\r"), std::string::npos);
}

TEST(CompatPartOf, FindsTheDefinition) {
  EXPECT_EQ(CompatPartOf("__shfl_sync"), "warp_shuffle");
  EXPECT_EQ(CompatPartOf("__vadd4"), "byte_simd");
  EXPECT_EQ(CompatPartOf("__popc"), "");
  EXPECT_EQ(CompatPartOf("shfl_sync"), "");
}

}  // namespace
}  // namespace portolan
