#include "select/tile_model.h"

#include <gtest/gtest.h>

#include "select/family_cublaslt.h"
#include "select/family_triton.h"
#include "select/test_devices.h"

namespace portolan {
namespace {

// Every term that a test does not look at is switched off.
std::array<TileConstants, 1> BareConstants() {
  std::array<TileConstants, 1> classes{};
  return classes;
}

TileKernel BareKernel() {
  TileKernel k;
  k.tile_m = k.tile_n = 100;
  k.inv_tile_m = k.inv_tile_n = 0.01;
  k.step_k = 10;
  k.inv_step_k = 0.1;
  k.units = 100;
  return k;
}

class TileModelTest : public ::testing::Test {
 protected:
  KernelTerms Terms(const GemmProblem& problem, const TileKernel& kernel, KernelRegime* regime = nullptr) {
    return EvaluateTile(DescribeTileProblem(problem, device_, constants_), kernel, regime);
  }
  TileDevice device_ = DescribeTileDevice(RoundAccelerator(), DType::kBf16);
  std::array<TileConstants, 1> constants_ = BareConstants();
};

TEST_F(TileModelTest, DeviceRatesArePerUnit) {
  EXPECT_DOUBLE_EQ(device_.matrix_rate, 1e12);
  EXPECT_DOUBLE_EQ(device_.lds_rate, 128e9);
}

TEST_F(TileModelTest, MatrixTermAndWaveQuantisationByHand) {
  TileKernel k = BareKernel();
  k.matrix = {1e-6, 2e-6, 3e-6};
  k.step = 0;
  // 1000 x 1000: 100 tiles on 100 units, K = 50 in five steps of 1 us (alone: step(1) = (1 + 1 + (1/3)^4)^(1/4)).
  const double step = std::pow(1 + 1 + std::pow(1.0 / 3, 4), 0.25) * 1e-6;
  const KernelTerms even = Terms(Product(1000, 1000, 50), k);
  EXPECT_NEAR(even.total, 5 * step, 1e-15);
  EXPECT_NEAR(even.matrix, 5e-6, 1e-15);
  EXPECT_NEAR(even.wave_quantisation, 0, 1e-15);
  // One row of tiles more: 110 tiles take two rounds where 1.1 would do.
  const KernelTerms uneven = Terms(Product(1001, 1000, 50), k);
  EXPECT_NEAR(uneven.total, 10 * step, 1e-15);
  EXPECT_NEAR(uneven.wave_quantisation, (2 - 1.1) * 5 * step, 1e-15);
  // NN and NT read their own matrix time.
  EXPECT_GT(Terms(Product(1000, 1000, 50, GemmLayout::kNN), k).matrix, even.matrix);
}

TEST_F(TileModelTest, HbmCountsOperandsOnceAndTheOutput) {
  TileKernel k = BareKernel();
  k.seconds_per_hbm_byte = 1e-9;
  // A 1000 x 50, B 1000 x 50 and D 1000 x 1000 of two bytes: 0.1 + 0.1 + 2 MB.
  EXPECT_NEAR(Terms(Product(1000, 1000, 50), k).hbm, 2.2e-3, 1e-12);
  // Warm operands that fit half of the L2 leave only the output.
  GemmProblem warm = Product(1000, 1000, 50);
  warm.inputs = InputResidency::kJustProduced;
  EXPECT_NEAR(Terms(warm, k).hbm, 2e-3, 1e-12);
}

TEST_F(TileModelTest, RefetchStartsWhenOperandsOutgrowTheL2) {
  TileKernel k = BareKernel();
  k.seconds_per_hbm_byte = 1e-12;
  k.refetch = 1.0;
  k.bytes_k = 2.0;
  GemmProblem small = Product(10000, 1000, 1000);   // 22 MB of 60
  GemmProblem large = Product(10000, 10000, 2000);  // 80 MB
  const auto compulsory = [&](const GemmProblem& p) {
    return 1e-12 * 2.0 * static_cast<double>(p.m * p.k + p.k * p.n + p.m * p.n);
  };
  EXPECT_NEAR(Terms(small, k).hbm, compulsory(small), 1e-9);
  // 10,000 tiles in 100 waves of 10 x 10 tiles, each 2 x 1000 rows of 2000 elements of two bytes: 100 x 8 MB.
  EXPECT_NEAR(Terms(large, k).hbm, 1e-12 * (100 * 8e6 + 2e8), 1e-9);
}

TEST_F(TileModelTest, SplitsSharePartsOfKAndPayForPartialSums) {
  TileKernel k = BareKernel();
  k.matrix = {1e-6, 1e-6, 1e-6};
  const double whole = Terms(Product(100, 100, 1000), k).total;
  k.split = 10;
  k.inv_split = 0.1;
  EXPECT_NEAR(Terms(Product(100, 100, 1000), k).total, whole / 10, 1e-15);
  k.reduction = 3e-6;
  k.seconds_per_partial = 1e-10;  // 10,000 elements x 10 parts = 10 us
  EXPECT_NEAR(Terms(Product(100, 100, 1000), k).split_reduction, 13e-6, 1e-15);
}

TEST_F(TileModelTest, FewerUsableUnitsMakeMoreWaves) {
  TileKernel k = BareKernel();
  k.matrix = {1e-6, 1e-6, 1e-6};
  GemmProblem p = Product(1000, 1000, 50);
  const double all = Terms(p, k).total;
  p.usable_units = 50;
  EXPECT_NEAR(Terms(p, k).total, 2 * all, 1e-15);
}

TEST_F(TileModelTest, FactorsMultiplyByRegime) {
  TileKernel k = BareKernel();
  k.matrix = {1e-6, 1e-6, 1e-6};
  KernelRegime regime;
  const double plain = Terms(Product(1000, 1000, 160), k, &regime).total;
  EXPECT_DOUBLE_EQ(regime.depth, 0.5);  // 16 steps
  EXPECT_DOUBLE_EQ(regime.fill, 0.5);   // one wave
  k.factor = {0.2, 0.0, 0.0};
  k.slopes[0][0] = 0.4f;  // by depth
  const KernelTerms t = Terms(Product(1000, 1000, 160), k);
  EXPECT_NEAR(t.total, plain * std::exp(0.4), 1e-6 * plain);
  EXPECT_NEAR(t.residual, t.total - plain, 1e-15);
}

TEST_F(TileModelTest, NoFactorPromisesMoreThanThePeak) {
  TileKernel k = BareKernel();
  k.matrix = {1e-6, 1e-6, 1e-6};
  // 2 x 1000 x 1000 x 50 flops at 100 TFLOP/s take 1 us.
  k.factor = {-3.9, -4.0, 0.0};
  const double fast = Terms(Product(1000, 1000, 50), k).total;
  EXPECT_GE(fast, 0.99e-6);
  EXPECT_LE(fast, 1e-6);
  k.factor = {-4.0, 0.0, 0.0};
  EXPECT_LT(Terms(Product(1000, 1000, 50), k).total, fast) << "the order is kept";
}

// Laws that any constants must keep, for both families.
TEST_F(TileModelTest, MoreWorkNeverTakesLess) {
  for (const FamilyEntry* family : {&kTritonFamily, &kCublasLtFamily}) {
    const auto model = family->make(RoundAccelerator(), InitialConstants(family->family, DType::kBf16));
    GemmKernel kernel;
    kernel.family = family->family;
    kernel.tile_m = 128;
    kernel.tile_n = 128;
    kernel.tile_k = 64;
    kernel.waves = 4;
    kernel.stages = 3;
    kernel.algo = 66;
    kernel.tile_id = 20;
    double last = 0.0;
    for (int64_t k = 64; k <= 65536; k *= 2) {
      const double now = model->Score(Product(4096, 4096, k), kernel).total;
      EXPECT_GE(now, last);
      last = now;
    }
    last = 0.0;
    for (int64_t m = 128; m <= 65536; m *= 2) {
      const double now = model->Score(Product(m, 1024, 1024), kernel).total;
      EXPECT_GE(now, last);
      last = now;
    }
  }
}

TEST_F(TileModelTest, ScoreAllAgreesWithScoreToTheLastBit) {
  for (const FamilyEntry* family : {&kTritonFamily, &kCublasLtFamily}) {
    const auto model = family->make(RoundAccelerator(), InitialConstants(family->family, DType::kBf16));
    std::vector<GemmKernel> kernels(8);
    for (size_t i = 0; i < kernels.size(); ++i) {
      GemmKernel& k = kernels[i];
      k.family = family->family;
      k.tile_m = static_cast<int16_t>(64 << (i % 3));
      k.tile_n = 128;
      k.tile_k = 64;
      k.waves = 8;
      k.stages = 3;
      k.algo = 66;
      k.split_k = static_cast<int16_t>(i + 1);
      k.reduction = k.split_k > 1 ? SplitReduction::kAtomic : SplitReduction::kNone;
    }
    const auto scorer = model->Prepare(kernels);
    std::vector<double> seconds(kernels.size());
    const GemmProblem p = Product(5000, 3000, 4000);
    scorer->ScoreAll(p, seconds);
    for (size_t i = 0; i < kernels.size(); ++i) {
      EXPECT_EQ(seconds[i], model->Score(p, kernels[i]).total);
      EXPECT_EQ(seconds[i], scorer->Terms(p, i).total);
    }
  }
}

}  // namespace
}  // namespace portolan
