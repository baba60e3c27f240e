#include "select/op_variant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hw/catalogue.h"
#include "select/test_devices.h"

namespace portolan {
namespace {

struct Timed {
  double bags;
  int64_t tables, dim;
  double cta_us, warp_us;
};

// FBGEMM commit 8ac2022ea (pull request 5835), MI350X, fp32 rows, row-wise Adagrad: the shapes timed with both kernels.
constexpr Timed kTimed[] = {{2048, 1, 8, 60, 43},      {4096, 1, 8, 113, 70},      {131072, 1, 8, 299, 1196},
                            {2048, 1, 512, 76, 65},    {4096, 1, 512, 163, 119},   {131072, 1, 512, 1427, 2353},
                            {2048, 10, 8, 71, 349},    {4096, 10, 8, 145, 666},    {131072, 10, 8, 2404, 11890},
                            {2048, 10, 256, 106, 492}, {4096, 10, 256, 228, 892},  {131072, 10, 256, 7047, 17836},
                            {2048, 10, 512, 178, 648}, {4096, 10, 512, 383, 1183}, {131072, 10, 512, 14523, 29404}};

EmbeddingShape Shape(const Timed& t) {
  EmbeddingShape shape;
  shape.tables = t.tables;
  shape.dim = t.dim;
  shape.lookups = shape.bags = t.bags * static_cast<double>(t.tables);
  return shape;
}

TEST(EmbeddingBackwardVariant, ChoosesTheFasterKernelOfEveryTimedPair) {
  const auto hardware = Catalogue::Load({"data"});
  ASSERT_TRUE(hardware.has_value());
  const Accelerator& mi350x = hardware->accelerators().at("mi350x");
  double worst = 1.0;
  for (const Timed& t : kTimed) {
    const auto ranked = RankEmbeddingBackward(Shape(t), mi350x);
    const double chosen = ranked[0].name == "cta" ? t.cta_us : t.warp_us;
    worst = std::min(worst, std::min(t.cta_us, t.warp_us) / chosen);
    for (const RankedVariant& variant : ranked) {
      const double measured = variant.name == "cta" ? t.cta_us : t.warp_us;
      // The times of either are within a factor of 2; both fit the choice, not the clock.
      EXPECT_LT(std::fabs(std::log(variant.estimate.total.value * 1e6 / measured)), std::log(2.0))
          << variant.name << " " << t.bags << " " << t.tables << " " << t.dim << ": "
          << variant.estimate.total.value * 1e6 << " us";
    }
  }
  EXPECT_EQ(worst, 1.0);
}

TEST(EmbeddingBackwardVariant, HandSum) {
  // Reference units x clock: 1 table of 1,000 lookups, 100 columns.
  //   warp 24 + 1000 x (9.1 + 2.25) ns = 35.35 us;  cta 5 + max(2.13, 1000 x (27 + 1.8) ns = 28.8) = 33.8 us
  Accelerator a = RoundAccelerator();
  a.compute_units = 256;
  a.clock_boost = Hertz(2.2e9);
  const auto ranked = RankEmbeddingBackward(Shape({1000, 1, 100, 0, 0}), a);
  EXPECT_EQ(ranked[0].name, "cta");
  EXPECT_NEAR(ranked[0].estimate.total.value, 33.8e-6, 1e-9);
  EXPECT_NEAR(ranked[1].estimate.total.value, 35.35e-6, 1e-9);
}

TEST(AttentionVariant, FusedWinsOnLongSequences) {
  const auto hardware = Catalogue::Load({"data"});
  ASSERT_TRUE(hardware.has_value());
  AttentionShape shape;
  shape.sequences = 8;
  shape.query_length = shape.key_length = 4096;
  shape.heads = 16;
  for (const char* chip : {"h100", "mi350x"}) {
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      const auto ranked = RankAttention(shape, pass, hardware->accelerators().at(chip));
      ASSERT_EQ(ranked.size(), 3u);
      EXPECT_EQ(ranked[0].name, "vendor") << chip;
      EXPECT_EQ(ranked[2].name, "framework") << chip;
      EXPECT_LE(ranked[0].estimate.total, ranked[1].estimate.total);
    }
  }
}

}  // namespace
}  // namespace portolan
