#include "select/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "select/constants.h"
#include "select/family_triton.h"
#include "select/test_devices.h"
#include "select/tile_model.h"

namespace portolan {
namespace {

// Times that the model itself makes with other constants.
std::vector<CalibrationRow> SyntheticRows(const FamilyConstants& truth) {
  const auto model = kTritonFamily.make(RoundAccelerator(), truth);
  std::vector<CalibrationRow> rows;
  int list = 0;
  for (const int64_t m : {256, 1024, 4096}) {
    for (const int64_t k : {128, 1024, 8192}) {
      for (const int tile : {64, 128}) {
        CalibrationRow row;
        row.problem = Product(m, 1024, k);
        row.kernel.tile_m = static_cast<int16_t>(tile);
        row.kernel.tile_n = 128;
        row.kernel.tile_k = 64;
        row.kernel.waves = 4;
        row.kernel.stages = 3;
        row.seconds = model->Score(row.problem, row.kernel).total;
        row.list = list;
        rows.push_back(row);
      }
      ++list;
    }
  }
  return rows;
}

TEST(CalibrateTest, MovesTowardsTheConstantsThatMadeTheTimes) {
  FamilyConstants truth = InitialConstants(KernelFamily::kTriton, DType::kBf16);
  truth.values[kHbmShare] *= 0.6;
  truth.values[kLaunch] *= 3.0;
  const auto rows = SyntheticRows(truth);
  const auto error = [&](const FamilyConstants& constants) {
    const auto model = kTritonFamily.make(RoundAccelerator(), constants);
    double sum = 0.0;
    for (const auto& row : rows) sum += std::fabs(std::log(model->Score(row.problem, row.kernel).total / row.seconds));
    return sum / static_cast<double>(rows.size());
  };
  const FamilyConstants fitted = FitFamily(kTritonFamily, RoundAccelerator(), DType::kBf16, rows, {});
  EXPECT_GT(error(InitialConstants(KernelFamily::kTriton, DType::kBf16)), 0.05);
  EXPECT_LT(error(fitted), 0.03);
  // The same inputs give the same constants.
  EXPECT_EQ(FitFamily(kTritonFamily, RoundAccelerator(), DType::kBf16, rows, {}).values, fitted.values);
}

TEST(CalibrateTest, RegretByHand) {
  std::vector<CalibrationRow> rows(4);
  for (size_t i = 0; i < 4; ++i) rows[i].list = static_cast<int>(i / 2);
  rows[0].seconds = 1;
  rows[1].seconds = 2;
  rows[2].seconds = 3;
  rows[3].seconds = 3;
  const std::vector<double> predicted = {5, 4, 1, 2};  // the first list's slow kernel is chosen: 1 / 2
  const RegretSummary r = Regret(rows, predicted);
  EXPECT_EQ(r.n, 2);
  EXPECT_DOUBLE_EQ(r.geomean, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(r.worst, 0.5);
  EXPECT_DOUBLE_EQ(r.p10, 0.55);
}

TEST(ConstantsTest, FilesRoundTripAndRefuseUnknownNames) {
  FamilyConstants c = InitialConstants(KernelFamily::kTriton, DType::kBf16);
  c.accelerator = "round";
  c.date = "2026-11-30";
  c.values[3] = 0.5;
  c.factors["tile=128x128:depth"] = -0.25;
  const std::string path = ::testing::TempDir() + "gemm_triton_round_bf16.yaml";
  ASSERT_TRUE(WriteFamilyConstants(c, "n 1", path));
  const auto read = ReadFamilyConstants(path);
  ASSERT_TRUE(read) << FormatError(read.error());
  EXPECT_DOUBLE_EQ(read->values[3], 0.5);
  EXPECT_EQ(read->factors, c.factors);
  EXPECT_EQ(read->date, "2026-11-30");
}

TEST(ConstantsTest, NearestStandsIn) {
  FamilyConstants h200 = InitialConstants(KernelFamily::kTriton, DType::kBf16);
  h200.accelerator = "h200";
  FamilyConstants fp8 = InitialConstants(KernelFamily::kTriton, DType::kFp8E4m3);
  fp8.accelerator = "h200";
  fp8.values[0] = 9e-7;
  Accelerator h100 = RoundAccelerator();
  h100.id = "h100";
  EXPECT_EQ(PickConstants({fp8, h200}, KernelFamily::kTriton, DType::kBf16, h100).values, h200.values);
  EXPECT_EQ(PickConstants({fp8, h200}, KernelFamily::kTriton, DType::kFp8E5m2, h100).values, fp8.values);
  EXPECT_EQ(PickConstants({fp8, h200}, KernelFamily::kTriton, DType::kFp16, h100).values, h200.values);
  EXPECT_EQ(PickConstants({h200}, KernelFamily::kCublasLt, DType::kBf16, h100).accelerator, "");
}

}  // namespace
}  // namespace portolan
