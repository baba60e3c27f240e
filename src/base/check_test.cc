#include "base/check.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

TEST(CheckTest, PassesWhenTrueAndEvaluatesOnce) {
  int evaluated = 0;
  PORTOLAN_CHECK(++evaluated == 1, "evaluated more than once");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, AbortsWithPlaceConditionAndMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int rows = 3;
  EXPECT_DEATH(PORTOLAN_CHECK(rows == 4, "rows went missing"),
               "check_test.cc:[0-9]+: internal error: rows went missing \\(rows == 4\\)");
}

}  // namespace
}  // namespace portolan
