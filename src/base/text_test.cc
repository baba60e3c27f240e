#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace portolan {
namespace {

TEST(TextTest, SplitAndJoinAreInverse) {
  EXPECT_EQ(Split("a,b,,c", ','), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string>{""}));
  for (const std::string text : {"", ",", "a", "a,b", ",a,,"}) EXPECT_EQ(Join(Split(text, ','), ","), text);
}

TEST(TextTest, LowerCaseLeavesOtherBytesAlone) { EXPECT_EQ(LowerCase("8xMI350X_é"), "8xmi350x_é"); }

TEST(TextTest, EditDistanceIsAMetric) {
  // kitten -> sitten -> sittin -> sitting.
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  const char* words[] = {"", "a", "rows", "rwos", "row", "h100", "h200", "mi300x"};
  for (const char* a : words) {
    for (const char* b : words) {
      EXPECT_EQ(EditDistance(a, b), EditDistance(b, a));
      for (const char* c : words) EXPECT_LE(EditDistance(a, c), EditDistance(a, b) + EditDistance(b, c));
    }
  }
}

TEST(TextTest, DidYouMeanSpeaksOnlyWhenNear) {
  const std::vector<std::string> known{"mi300x", "mi350x", "b200"};
  EXPECT_EQ(DidYouMean("MI350", known), "; did you mean 'mi350x'?");
  EXPECT_EQ(DidYouMean("tpu", known), "");
  EXPECT_EQ(DidYouMean("", known), "");
  EXPECT_EQ(DidYouMean("b200", {}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'x'), known), "");
}

TEST(TextTest, IntegersMustBeWholeTokens) {
  long long value = 0;
  EXPECT_TRUE(ParseInt64("-42", &value));
  EXPECT_EQ(value, -42);
  EXPECT_TRUE(ParseInt64("+7", &value));
  EXPECT_EQ(value, 7);
  EXPECT_TRUE(ParseInt64("9223372036854775807", &value));
  EXPECT_EQ(value, std::numeric_limits<int64_t>::max());
  for (const char* bad : {"", "+", "-", "+-5", "1.5", "12a", " 1", "1 ", "0x10", "9223372036854775808"}) {
    EXPECT_FALSE(ParseInt64(bad, &value)) << bad;
  }
}

TEST(TextTest, DoublesMustBeWholeTokens) {
  double value = 0;
  EXPECT_TRUE(ParseDouble("+4.0e7", &value));
  EXPECT_EQ(value, 4.0e7);
  for (const char* bad : {"", "+", "+-5", "++5", "1.5x", "1e", "1e400", "0x1p3", " 1", "1 ", "1,5"}) {
    EXPECT_FALSE(ParseDouble(bad, &value)) << bad;
  }
  // Named, so that the caller can refuse them by name.
  for (const char* nan : {"nan", ".nan", ".NaN"}) {
    EXPECT_TRUE(ParseDouble(nan, &value)) << nan;
    EXPECT_TRUE(std::isnan(value)) << nan;
  }
  for (const char* infinite : {"inf", ".inf", "+.inf", ".Inf", "-inf", "-.inf"}) {
    EXPECT_TRUE(ParseDouble(infinite, &value)) << infinite;
    EXPECT_TRUE(std::isinf(value)) << infinite;
    EXPECT_EQ(value < 0, infinite[0] == '-') << infinite;
  }
}

}  // namespace
}  // namespace portolan
