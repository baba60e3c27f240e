#include "units/dtype.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

TEST(DTypeTest, NamesRoundTripAndDiffer) {
  const std::vector<std::string> names = DTypeNames();
  EXPECT_EQ(names.size(), 13u);
  for (const std::string& name : names) {
    const std::optional<DType> dtype = ParseDType(name);
    ASSERT_TRUE(dtype.has_value()) << name;
    EXPECT_EQ(DTypeName(*dtype), name);
  }
  EXPECT_EQ(ParseDType("fp8"), DType::kFp8E4m3);
  EXPECT_FALSE(ParseDType("FP16").has_value());
  EXPECT_FALSE(ParseDType("").has_value());
}

TEST(DTypeTest, Sizes) {
  EXPECT_EQ(SizeOf(DType::kFp32).value, 4.0);
  EXPECT_EQ(SizeOf(DType::kTf32).value, 4.0);
  EXPECT_EQ(SizeOf(DType::kBf16).value, 2.0);
  EXPECT_EQ(SizeOf(DType::kFp8E5m2).value, 1.0);
  EXPECT_EQ(SizeOf(DType::kInt64).value, 8.0);
  // 32 elements and one scale byte: mxfp8 33 B, mxfp6 25 B, mxfp4 17 B.
  EXPECT_EQ(SizeOf(DType::kMxFp8).value * 32, 33.0);
  EXPECT_EQ(SizeOf(DType::kMxFp6).value * 32, 25.0);
  EXPECT_EQ(SizeOf(DType::kMxFp4).value * 32, 17.0);
}

}  // namespace
}  // namespace portolan
