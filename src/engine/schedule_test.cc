#include "engine/schedule.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

Schedule Read(const std::string& text) { return ReadSchedule(*YamlValue::Parse(text, "t.yaml")).value(); }

TEST(Schedule, WarmsUpHoldsAndDecays) {
  const Schedule schedule =
      Read("{rate: 2, embedding: 3, warmup_steps: 10, decay: quadratic, decay_start: 20, decay_steps: 10}");
  EXPECT_DOUBLE_EQ(schedule.rate, 2);
  EXPECT_DOUBLE_EQ(schedule.row_rate, 3);
  EXPECT_DOUBLE_EQ(schedule.Factor(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.Factor(10), 1);
  EXPECT_DOUBLE_EQ(schedule.Factor(20), 1);
  EXPECT_DOUBLE_EQ(schedule.Factor(25), 0.25);  // (1 - 1/2)^2
  EXPECT_DOUBLE_EQ(schedule.Factor(30), 0);
  EXPECT_DOUBLE_EQ(schedule.Factor(1000), 0);
}

TEST(Schedule, EndsAtItsEndFactor) {
  const Schedule linear = Read("{rate: 1, decay: linear, decay_steps: 4, end_factor: 0.2}");
  EXPECT_DOUBLE_EQ(linear.Factor(2), 0.6);
  EXPECT_DOUBLE_EQ(linear.Factor(9), 0.2);
  const Schedule cosine = Read("{rate: 1, decay: cosine, decay_steps: 4}");
  EXPECT_NEAR(cosine.Factor(2), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(Read("0.5").Factor(1000), 1);
}

TEST(Schedule, RefusesWhatIsWrong) {
  for (const char* text : {"{rate: -1}", "{rate: .nan}", "{rate: 1, decay: linear}", "{rate: 1, decay: step}", "[]",
                           "{rate: 1, decay: linear, decay_steps: 0}", "{rate: 1, warmup: 3}", "x"}) {
    EXPECT_FALSE(ReadSchedule(*YamlValue::Parse(text, "t.yaml"))) << text;
  }
}

}  // namespace
}  // namespace portolan
