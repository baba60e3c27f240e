#include "plan/objective.h"

#include <gtest/gtest.h>

#include <cmath>

namespace portolan {
namespace {

// DLRMv4-HSTU to AUC 0.75 (mlcommons/training, recommendation_v4 README).
Model Dlrmv4() {
  Model model;
  model.samples_to_quality = {{8192, 69.3e6}, {16384, 87.7e6}, {32768, 113.0e6}};
  return model;
}

TEST(ObjectiveTest, PublishedPointsAreMet) {
  for (const SamplesToQuality& point : Dlrmv4().samples_to_quality) {
    const std::optional<double> samples = SamplesToQualityAt(Dlrmv4(), static_cast<double>(point.global_batch));
    ASSERT_TRUE(samples);
    EXPECT_NEAR(*samples, point.samples, 1e-9 * point.samples);
  }
}

// Half way between 8,192 and 16,384 on a logarithmic axis: sqrt(69.3 x 87.7) = 77.96 M.
TEST(ObjectiveTest, InterpolatesBetweenLogarithms) {
  EXPECT_NEAR(*SamplesToQualityAt(Dlrmv4(), 8192 * std::sqrt(2.0)), 77.96e6, 0.01e6);
}

TEST(ObjectiveTest, Ends) {
  EXPECT_EQ(SamplesToQualityAt(Dlrmv4(), 64), 69.3e6) << "held below the smallest batch";
  // One and a half times the largest: 113.0 x (113.0 / 87.7)^log2(1.5) = 131.1 M.
  EXPECT_NEAR(*SamplesToQualityAt(Dlrmv4(), 1.5 * 32768), 131.1e6, 0.1e6);
  EXPECT_FALSE(SamplesToQualityAt(Dlrmv4(), 1.6 * 32768));
  EXPECT_FALSE(SamplesToQualityAt(Model(), 8192));
  EXPECT_FALSE(SamplesToQualityAt(Dlrmv4(), 0));
  Model one;
  one.samples_to_quality = {{8192, 69.3e6}};
  EXPECT_EQ(SamplesToQualityAt(one, 8192), 69.3e6);
  EXPECT_FALSE(SamplesToQualityAt(one, 8193)) << "one point has no slope";
}

TEST(ObjectiveTest, NeverFewerSamplesForABiggerBatch) {
  double last = 0;
  for (double batch = 1000; batch < 49000; batch *= 1.1) {
    const double samples = *SamplesToQualityAt(Dlrmv4(), batch);
    EXPECT_GE(samples, last);
    last = samples;
  }
}

// Order in the file does not matter.
TEST(ObjectiveTest, PointsInAnyOrder) {
  Model shuffled = Dlrmv4();
  std::swap(shuffled.samples_to_quality[0], shuffled.samples_to_quality[2]);
  EXPECT_EQ(SamplesToQualityAt(shuffled, 20000), SamplesToQualityAt(Dlrmv4(), 20000));
}

// 69.3 M samples in steps of 8,192 and 0.5 s: 8,459.5 steps, 4,229.7 s.
TEST(ObjectiveTest, TimeToQuality) {
  EXPECT_NEAR(TimeToQuality(Dlrmv4(), 8192, Seconds(0.5))->value, 4229.7, 0.1);
  EXPECT_TRUE(ObjectiveOf(Dlrmv4(), 8192, Seconds(0.5)).to_quality);
  const Objective plain = ObjectiveOf(Model(), 8192, Seconds(0.5));
  EXPECT_FALSE(plain.to_quality);
  EXPECT_DOUBLE_EQ(plain.seconds, 0.5 / 8192);
}

}  // namespace
}  // namespace portolan
