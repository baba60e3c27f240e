#include "hw/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hw/catalogue.h"

namespace portolan {
namespace {

class DiffTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Catalogue> loaded = Catalogue::Load({"data"});
    ASSERT_TRUE(loaded) << FormatError(loaded.error());
    catalogue_ = std::move(*loaded);
  }
  std::vector<HardwareDifference> Diff(const std::string& a, const std::string& b) const {
    const Accelerator& from = catalogue_.accelerators().at(a);
    const Accelerator& to = catalogue_.accelerators().at(b);
    return DiffAccelerators(from, catalogue_.fabrics().at(from.scale_up_fabric), to,
                            catalogue_.fabrics().at(to.scale_up_fabric));
  }
  Catalogue catalogue_;
};

const HardwareDifference* Find(const std::vector<HardwareDifference>& rows, const std::string& quantity) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const HardwareDifference& row) { return row.quantity == quantity; });
  return found == rows.end() ? nullptr : &*found;
}

TEST_F(DiffTest, B200ToMi350x) {
  const auto rows = Diff("b200", "mi350x");
  const HardwareDifference* hbm = Find(rows, "HBM capacity");
  ASSERT_NE(hbm, nullptr);
  EXPECT_NEAR(hbm->ratio, 1.6, 1e-9);
  EXPECT_EQ(hbm->value_a, "180 GB");
  EXPECT_EQ(hbm->value_b, "288 GB");
  EXPECT_EQ(hbm->allows.find("fewer shards, bigger local batch, less recomputation"), 0u);
  const HardwareDifference* topology = Find(rows, "scale-up topology");
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->value_a, "switch");
  EXPECT_EQ(topology->value_b, "full_mesh");
  EXPECT_NE(topology->allows.find("g-1 of the links"), std::string::npos);
  EXPECT_NE(topology->allows.find("one pair 76.8 GB/s instead of 900 GB/s"), std::string::npos);
  // Sustained 1338 against 1745, peak 2307 against 2250 TFLOP/s.
  EXPECT_NE(Find(rows, "sustained bf16 matrix rate")->allows.find("(by peak 1.03x)"), std::string::npos);
  const HardwareDifference* rate = Find(rows, "scale-up rate of a device, each way");
  ASSERT_NE(rate, nullptr);
  EXPECT_NEAR(rate->ratio, 537.6 / 900, 1e-9);
  EXPECT_NE(Find(rows, "wave size"), nullptr);
  // 1338 / 5.50 against 1745 / 6.61: 243 and 264 flops a byte.
  EXPECT_NEAR(Find(rows, "machine balance, bf16 over HBM")->ratio, 0.92, 0.01);
  EXPECT_EQ(Find(rows, "board power"), nullptr);                // 1000 W both
  EXPECT_EQ(Find(rows, "memory-side cache")->value_a, "none");  // 256 MiB against nothing
  EXPECT_EQ(Find(rows, "memory-side cache")->value_b, "256 MiB");
  EXPECT_EQ(Find(rows, "sustained tf32 matrix rate")->value_b, "none");
  EXPECT_NE(Find(rows, "sustained tf32 matrix rate")->allows.find("such layers run in bf16 at"), std::string::npos);
  // A quarter of the L2 and 3.9 times the special functions do not outrank 1.6 times the memory.
  EXPECT_GT(hbm->weight, Find(rows, "L2 capacity, all dies")->weight);
  EXPECT_GT(hbm->weight, Find(rows, "special-function results (exp, tanh)")->weight);
}

TEST_F(DiffTest, RankedByWeight) {
  for (const auto& [a, unused_a] : catalogue_.accelerators()) {
    for (const auto& [b, unused_b] : catalogue_.accelerators()) {
      const auto rows = Diff(a, b);
      EXPECT_TRUE(
          std::is_sorted(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.weight > y.weight; }))
          << a << " " << b;
      for (const HardwareDifference& row : rows) {
        EXPECT_FALSE(row.allows.empty()) << row.quantity;
        if (row.ratio <= 0) continue;
        EXPECT_GT(row.weight, 0) << row.quantity;
        EXPECT_LE(row.weight, std::abs(std::log(row.ratio)) + 1e-12) << row.quantity;
      }
    }
  }
}

// Antisymmetric: the way back has the same rows with inverse ratios; a device does not differ from itself.
TEST_F(DiffTest, WayBack) {
  EXPECT_TRUE(Diff("h100", "h100").empty());
  const auto there = Diff("h100", "mi300x");
  const auto back = Diff("mi300x", "h100");
  for (const HardwareDifference& row : there) {
    const HardwareDifference* other = Find(back, row.quantity);
    if (other == nullptr) {
      EXPECT_NEAR(row.ratio, 1.0, 1.1 * kSameRatio) << row.quantity;
      continue;
    }
    if (row.ratio <= 0) continue;
    EXPECT_NEAR(row.ratio * other->ratio, 1.0, 1e-9) << row.quantity;
  }
}

}  // namespace
}  // namespace portolan
