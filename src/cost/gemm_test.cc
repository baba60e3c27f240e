#include "cost/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "cost/gemm_tiles.h"
#include "hw/catalogue.h"

namespace portolan {
namespace {

const Catalogue& Chips() {
  static const Catalogue catalogue = [] {
    auto loaded = Catalogue::Load({"data"});
    EXPECT_TRUE(loaded.has_value());
    return loaded.has_value() ? *loaded : Catalogue();
  }();
  return catalogue;
}

const Accelerator& Chip(const std::string& id) { return Chips().accelerators().at(id); }

GemmShape Shape(int64_t m, int64_t n, int64_t k, GemmLayout layout = GemmLayout::kTN) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.layout = layout;
  return shape;
}

GemmShape Tf32(GemmShape shape) {
  shape.a = shape.b = shape.d = DType::kFp32;
  shape.compute = DType::kTf32;
  return shape;
}

double Micros(const GemmShape& shape, const Accelerator& chip, InputResidency inputs = InputResidency::kCold) {
  return GemmEstimate(shape, chip, inputs).total.value * 1e6;
}

// A made-up device with round numbers: 100 units of 2 TFLOP/s.
Accelerator RoundChip() {
  Accelerator chip;
  chip.isa = "gfx0";
  chip.compute_units = 100;
  chip.clock_boost = Hertz(1e9);
  chip.sustained_matrix[DType::kBf16] = FlopsPerSecond(200e12);
  chip.peak_vector_fp32 = FlopsPerSecond(10e12);
  chip.shared_memory_per_unit = Bytes(100e3);
  chip.l2 = Bytes(100e6);
  chip.l2_rate = BytesPerSecond(10e12);
  chip.hbm_peak = BytesPerSecond(1e12);
  chip.hbm_sustained = BytesPerSecond(1e12);
  chip.kernel_fixed = Seconds(5e-6);
  return chip;
}

TEST(GemmTerms, SumOfOneWaveByHand) {
  // 2560 x 2560 x 640 = 10 x 10 tiles of 256 x 256: one on each of the 100 units, 10 steps of 64 elements of K.
  const GemmTerms terms = GemmBest(Shape(2560, 2560, 640), RoundChip(), InputResidency::kCold);
  EXPECT_EQ(terms.tile_m, 256);
  EXPECT_EQ(terms.tile_n, 256);
  EXPECT_EQ(terms.split_k, 1);
  EXPECT_DOUBLE_EQ(terms.fixed, 5e-6);
  // 10 steps x 2 x 256 x 256 x 64 flops / 2 TFLOP/s; no extra reads of shared memory at the reference tile.
  EXPECT_NEAR(terms.matrix, 41.943e-6, 1e-9);
  // A and B: 2 x 2560 x 640 x 2 B = 6.5536 MB at 1 TB/s; D: 13.1072 MB.
  EXPECT_NEAR(terms.hbm, 6.5536e-6 + 13.1072e-6, 1e-9);
  // 10 steps x 512 rows x 128 B = 655,360 B at 0.84 x 10 TB/s / 100 units.
  EXPECT_NEAR(terms.l2, 7.8019e-6, 1e-9);
  // 655,360 B at 0.56 x 100 kB in flight per 0.6 us.
  EXPECT_NEAR(terms.latency, 7.0217e-6, 1e-9);
  EXPECT_NEAR(terms.store, 0.32 * 13.1072e-6, 1e-9);
  EXPECT_EQ(terms.reduction, 0.0);
  EXPECT_EQ(terms.issue, 0.0);
  // sqrt(41.943^2 + 19.661^2 + 0.23 x 41.943 x 19.661) = 48.326
  EXPECT_NEAR(terms.total, (5.0 + 48.326 + 4.194) * 1e-6, 5e-9);
}

TEST(GemmTerms, PartialSecondWaveCostsMoreThanItsShare) {
  // 2816 rows: 110 tiles, 1.1 waves. Two whole waves less 0.5 of the idle 0.9 = 1.55 tile times, if 256 x 256 stays.
  const GemmTerms one = GemmBest(Shape(2560, 2560, 6400), RoundChip(), InputResidency::kCold);
  const GemmTerms more = GemmBest(Shape(2816, 2560, 6400), RoundChip(), InputResidency::kCold);
  EXPECT_GT(more.matrix, 1.10 * one.matrix);
  EXPECT_LE(more.matrix, 1.55 * one.matrix + 1e-12);
}

TEST(GemmTerms, UnknownFactsSwitchTheirTermsOff) {
  Accelerator chip = RoundChip();
  chip.l2_rate = BytesPerSecond(0.0);
  chip.shared_memory_per_unit = Bytes(0.0);
  chip.clock_boost = Hertz(0.0);
  const GemmTerms terms = GemmBest(Shape(2560, 2560, 640), chip, InputResidency::kCold);
  EXPECT_EQ(terms.l2, 0.0);
  EXPECT_GT(terms.total, terms.matrix);
  EXPECT_TRUE(std::isfinite(Micros(Shape(1024, 479, 1024), chip)));
}

TEST(GemmTerms, EmptyShapeCostsALaunch) { EXPECT_DOUBLE_EQ(Micros(Shape(0, 128, 128), RoundChip()), 5.0); }

TEST(GemmTerms, SplitKServesDeepWeightGradients) {
  // OneTrans weight gradient: 12 tiles of 256 x 256 cannot fill 148 units, 1.5 M rows of K can.
  const GemmTerms terms = GemmBest(Shape(384, 1536, 1536000, GemmLayout::kNT), Chip("b200"), InputResidency::kCold);
  EXPECT_GT(terms.split_k, 4);
  EXPECT_GT(terms.reduction, 0.0);
  const double rate = 2.0 * 384 * 1536 * 1536000 / terms.total;
  EXPECT_GT(rate, 0.45 * 1745e12);  // published kernels of this family: 570 to 1139 TFLOP/s
  EXPECT_LT(rate, 0.85 * 1745e12);
}

TEST(GemmLaws, TwiceTheWorkIsNeverFasterNorFarMoreThanTwice) {
  for (const auto& [id, chip] : Chips().accelerators()) {
    for (const GemmShape& base : {Shape(256, 256, 256), Shape(1024, 512, 1024), Shape(6912, 1024, 512),
                                  Shape(65536, 384, 1536), Shape(384, 1536, 65536, GemmLayout::kNT)}) {
      for (int side = 0; side < 4; ++side) {
        GemmShape twice = base;
        (side == 0 ? twice.m : side == 1 ? twice.n : side == 2 ? twice.k : twice.batch) *= 2;
        EXPECT_GE(Micros(twice, chip) * 1.0001, Micros(base, chip)) << id << " side " << side;
        EXPECT_LE(Micros(twice, chip), 2.6 * Micros(base, chip)) << id << " side " << side;
      }
    }
  }
}

TEST(GemmLaws, NeverFasterThanTheRoofline) {
  for (const auto& [id, chip] : Chips().accelerators()) {
    for (int64_t m : {1, 64, 1000, 8192, 100000}) {
      for (int64_t n : {1, 96, 128, 479, 1536, 6144}) {
        for (int64_t k : {13, 64, 351, 4096}) {
          const GemmShape shape = Shape(m, n, k);
          const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
          const double bytes = 2.0 * static_cast<double>(m * k + n * k + m * n);
          const double total = GemmEstimate(shape, chip).total.value;
          EXPECT_GE(total, flops / GemmRate(DType::kBf16, chip).value) << id << " " << m << " " << n << " " << k;
          EXPECT_GE(total, bytes / chip.hbm_peak.value) << id << " " << m << " " << n << " " << k;
          EXPECT_GE(total, chip.kernel_fixed.value);
        }
      }
    }
  }
}

TEST(GemmLaws, ReducedPrecisionIsNotSlower) {
  for (const char* id : {"a100", "h100", "h200", "b200", "mi300x"}) {
    const GemmShape shape = Shape(16384, 1024, 1024);
    EXPECT_LT(Micros(shape, Chip(id)), Micros(Tf32(shape), Chip(id))) << id;
    GemmShape fp32 = Tf32(shape);
    fp32.compute = DType::kFp32;
    EXPECT_LT(Micros(Tf32(shape), Chip(id)), Micros(fp32, Chip(id))) << id;
  }
}

TEST(GemmLaws, ProducedInputsAreNotSlowerThanColdOnes) {
  for (const auto& [id, chip] : Chips().accelerators()) {
    const GemmShape shape = Shape(8192, 256, 512);
    EXPECT_LE(Micros(shape, chip, InputResidency::kJustProduced), Micros(shape, chip)) << id;
  }
}

TEST(GemmLaws, GroupsWasteTilesAndReadTheirOwnWeights) {
  GemmShape grouped = Shape(8192, 512, 512);
  const double plain = Micros(grouped, Chip("mi350x"));
  grouped.groups = 64;
  EXPECT_GT(Micros(grouped, Chip("mi350x")), plain);
  EXPECT_LT(Micros(grouped, Chip("mi350x")), 8.0 * plain);
}

// Best of cuBLASLt's list, bf16, one H200 (shared data set h200_padding): 264 us at K = 479, 51.7 us at K = 480; tf32
// 320 and 100 us; tf32 rows of 300 elements are whole vectors, padding them to 304 gains nothing.
TEST(GemmAlignment, PaddingOneColumnIsWorthFiveTimes) {
  const Accelerator& h200 = Chip("h200");
  const double bf16_479 = Micros(Shape(32768, 1024, 479), h200), bf16_480 = Micros(Shape(32768, 1024, 480), h200);
  EXPECT_NEAR(bf16_479, 264.0, 66.0);
  EXPECT_NEAR(bf16_480, 51.7, 8.0);
  EXPECT_GT(bf16_479, 4.0 * bf16_480);
  const double tf32_479 = Micros(Tf32(Shape(32768, 1024, 479)), h200);
  EXPECT_NEAR(tf32_479, 320.0, 80.0);
  EXPECT_GT(tf32_479, 2.0 * Micros(Tf32(Shape(32768, 1024, 480)), h200));
  EXPECT_NEAR(Micros(Tf32(Shape(65536, 300, 200)), h200), Micros(Tf32(Shape(65536, 304, 200)), h200), 3.0);
}

TEST(GemmAlignment, AVectorNeedsNoPadding) {
  // N = 1: 33.6 MB in 10.5 us on an H200.
  EXPECT_NEAR(Micros(Shape(65536, 1, 256), Chip("h200")), 10.5, 2.5);
}

TEST(GemmRate, FallsBackAsDocumented) {
  Accelerator chip = RoundChip();
  EXPECT_EQ(GemmRate(DType::kBf16, chip).value, 200e12);
  EXPECT_EQ(GemmRate(DType::kFp16, chip).value, 200e12);
  EXPECT_EQ(GemmRate(DType::kFp8E4m3, chip).value, 200e12);
  EXPECT_EQ(GemmRate(DType::kFp32, chip).value, 7.5e12);
  EXPECT_EQ(GemmRate(DType::kFp64, chip).value, 3.75e12);
  EXPECT_EQ(GemmRate(DType::kTf32, chip).value, 7.5e12);  // bf16 is not native: no peak
  chip.peak_matrix[DType::kBf16] = FlopsPerSecond(250e12);
  EXPECT_EQ(GemmRate(DType::kTf32, chip).value, 200e12 / 3.0);
  chip.sustained_matrix[DType::kFp32] = FlopsPerSecond(80e12);
  EXPECT_EQ(GemmRate(DType::kTf32, chip).value, 80e12);
}

// Layers of DCNv2 (MLPerf DLRM-DCNv2, local batch 6912): cross 3456 <-> 512, bottom and top MLP, all three products.
TEST(GemmModel, Dcnv2LayersReachAPlausibleShareOfTheSustainedRate) {
  for (const char* id : {"a100", "h100", "b200", "mi300x", "mi355x"}) {
    double flops = 0.0, seconds = 0.0;
    for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
             {512, 3456}, {3456, 512}, {1024, 3456}, {1024, 1024}, {512, 1024}, {256, 512}, {128, 256}}) {
      for (GemmShape shape :
           {Shape(6912, n, k), Shape(6912, k, n, GemmLayout::kNN), Shape(n, k, 6912, GemmLayout::kNT)}) {
        shape.a = shape.b = shape.d = shape.compute = DType::kFp16;
        flops += 2.0 * 6912 * static_cast<double>(n * k);
        seconds += GemmEstimate(shape, Chip(id)).total.value;
      }
    }
    const double share = flops / seconds / GemmRate(DType::kFp16, Chip(id)).value;
    std::printf("DCNv2 layers on %-7s %6.1f us, %.0f %% of sustained\n", id, seconds * 1e6, share * 100);
    EXPECT_GT(share, 0.25) << id;
    EXPECT_LT(share, 0.95) << id;
  }
}

TEST(GemmSpeed, AFewMicroseconds) {
  constexpr int kRuns = 2000;
  double sum = 0.0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) {
    sum += GemmEstimate(Shape(1000 + i * 7, 1536, 384 + i), Chip("mi350x")).total.value;
  }
  const double us = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6 / kRuns;
  std::printf("GemmEstimate: %.2f us each\n", us);
  EXPECT_GT(sum, 0.0);
  EXPECT_LT(us, 100.0);  // 2 to 5 in a Release build; the limit only catches a change of order, sanitizers included
}

}  // namespace
}  // namespace portolan
