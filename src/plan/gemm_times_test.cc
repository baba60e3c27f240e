#include "plan/gemm_times.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cost/gemm.h"
#include "plan/test_inputs.h"
#include "select/catalogue_error.h"
#include "select/catalogue_files.h"
#include "select/constants.h"
#include "select/selector.h"

namespace portolan {
namespace {

constexpr double kKernelError = 0.07;

GemmShape Bf16(int64_t m, int64_t n, int64_t k, GemmLayout layout = GemmLayout::kTN) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.layout = layout;
  return shape;
}

// A record of one set: Triton, bf16, sm_90, aligned, TN and NN, no worse than cost/gemm.
CatalogueError TritonRecord() {
  CatalogueError record;
  record.set = "invented";
  record.chip = "h200";
  record.isa = "sm_90";
  record.family = KernelFamily::kTriton;
  record.layouts = {GemmLayout::kTN, GemmLayout::kNN};
  record.n = kLeastShapes;
  record.kernel_error = kKernelError;
  record.select = {0.05, 0.05, 0.1};
  record.kernel_blind = {0.06, 0.06, 0.2};
  return record;
}

class GemmTimesTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / "portolan_gemm_times";
    std::filesystem::create_directories(directory_ / "constants");
    // Kernels and constants as shipped, the record our own.
    std::filesystem::create_directory_symlink(std::filesystem::absolute("data/kernels"), directory_ / "kernels");
    Copy("gemm_triton_h200_bf16.yaml");
    Record(TritonRecord());
  }
  void TearDown() override {
    SetGemmTimes(nullptr);
    std::filesystem::remove_all(directory_);
  }
  void Copy(const std::string& name) {
    std::filesystem::copy_file("data/constants/" + name, directory_ / "constants" / name);
  }
  void Record(const CatalogueError& record) {
    ASSERT_TRUE(WriteCatalogueErrors({record}, "2026-11-30", "test", directory_ / "constants/whole_catalogue.yaml"));
  }
  std::shared_ptr<const GemmTimes> Times() { return ValueOrFail(GemmTimes::Create({directory_.string()})); }

  std::filesystem::path directory_;
  const Accelerator chip_ = TestCluster("1xh100").accelerator;
};

TEST_F(GemmTimesTest, PricesWhatTheSelectorExpects) {
  const auto times = Times();
  const auto constants = ValueOrFail(LoadGemmConstants({directory_.string()}));
  const ShippedKernels shipped = ValueOrFail(LoadShippedKernels({directory_.string()}, chip_, DType::kBf16));
  const auto selector = Selector::Create(chip_, KernelsOf(shipped.catalogue, KernelFamily::kTriton), constants);
  ASSERT_TRUE(selector);
  for (const GemmShape& shape : {Bf16(8192, 1024, 512), Bf16(512, 256, 4096, GemmLayout::kNN)}) {
    const GemmProblem problem = ProblemOf(shape);
    const RankedKernel best = selector->Best(problem);
    const Seconds expected = selector->ExpectedTime(problem, best, kKernelError);
    EXPECT_GE(expected, best.time);
    const auto priced = times->SelectEstimate(shape, chip_);
    ASSERT_TRUE(priced);
    EXPECT_NEAR(priced->total / expected, 1.0, 1e-12);
    EXPECT_NEAR((priced->compute + priced->memory + priced->launch) / expected, 1.0, 1e-9);
    EXPECT_EQ(times->SelectEstimate(shape, chip_)->total, priced->total);  // remembered
  }
  EXPECT_NE(times->Note(DType::kBf16, chip_).find("triton"), std::string::npos);
}

TEST_F(GemmTimesTest, EverythingElseIsLeftToTheKernelBlindModel) {
  const auto times = Times();
  EXPECT_FALSE(times->SelectEstimate(Bf16(512, 512, 511), chip_));                   // rows not aligned
  EXPECT_FALSE(times->SelectEstimate(Bf16(512, 512, 512, GemmLayout::kNT), chip_));  // no such layout measured
  GemmShape other = Bf16(512, 512, 512);
  other.compute = DType::kFp16;
  EXPECT_FALSE(times->SelectEstimate(other, chip_));
  GemmShape grouped = Bf16(512, 512, 512);
  grouped.groups = 4;
  EXPECT_FALSE(times->SelectEstimate(grouped, chip_));
  EXPECT_FALSE(times->SelectEstimate(Bf16(512, 512, 512), TestCluster("1xb200").accelerator));
  EXPECT_EQ(times->Note(DType::kTf32, chip_), "");
  // A directory without a record.
  const auto none = ValueOrFail(GemmTimes::Create({"/nowhere"}));
  EXPECT_FALSE(none->SelectEstimate(Bf16(512, 512, 512), chip_));
  EXPECT_EQ(none->Note(DType::kBf16, chip_), "");
}

TEST_F(GemmTimesTest, ARecordThatSaysWorseIsObeyed) {
  CatalogueError worse = TritonRecord();
  worse.select.p90 = 0.3;
  Record(worse);
  EXPECT_FALSE(Times()->SelectEstimate(Bf16(512, 512, 512), chip_));
}

TEST_F(GemmTimesTest, MissingConstantsAreSaid) {
  std::filesystem::remove(directory_ / "constants/gemm_triton_h200_bf16.yaml");
  const auto times = Times();
  EXPECT_FALSE(times->SelectEstimate(Bf16(512, 512, 512), chip_));
  EXPECT_NE(times->Note(DType::kBf16, chip_).find("gemm_triton_"), std::string::npos);
  std::ofstream(directory_ / "constants/whole_catalogue.yaml") << "sets: 3\n";
  EXPECT_FALSE(GemmTimes::Create({directory_.string()}));
}

TEST_F(GemmTimesTest, VariantsOfAChipArePricedApart) {
  const auto times = Times();
  const GemmShape shape = Bf16(8192, 4096, 4096);
  const Seconds whole = times->SelectEstimate(shape, chip_)->total;
  Accelerator half = chip_;
  half.sustained_matrix[DType::kBf16] = half.sustained_matrix[DType::kBf16] * 0.5;
  half.peak_matrix[DType::kBf16] = half.peak_matrix[DType::kBf16] * 0.5;
  // Half the matrix rate: nearly twice the main loop, the same launch, loads and stores.
  EXPECT_GT(times->SelectEstimate(shape, half)->total / whole, 1.3);
  EXPECT_EQ(times->SelectEstimate(shape, chip_)->total, whole);
}

TEST_F(GemmTimesTest, AStepUsesThem) {
  const Model model = ModelFromText(
      "model: dense\ndense_features: 512\ntables:\n  - {name: t, rows: 1000, dim: 64, lookups: 1}\n"
      "blocks:\n  - {name: bottom, type: mlp, input: dense, widths: [1024, 512]}\n"
      "  - {name: features, type: concat, inputs: [bottom, embeddings]}\n"
      "  - {name: top, type: mlp, input: features, widths: [1024, 8]}\n");
  Recipe recipe = DefaultRecipe();
  recipe.gemm = recipe.activation = DType::kBf16;
  const Cluster cluster = TestCluster("1xh100");
  const StepEstimate before = EstimateOrFail(model, recipe, cluster);
  SetGemmTimes(Times());
  const StepEstimate with = EstimateOrFail(model, recipe, cluster);
  SetGemmTimes(nullptr);
  const StepEstimate after = EstimateOrFail(model, recipe, cluster);
  EXPECT_EQ(before.step, after.step);
  ASSERT_EQ(before.graph.tasks.size(), with.graph.tasks.size());
  int changed = 0;
  for (size_t i = 0; i < before.graph.tasks.size(); ++i) {
    const bool same = before.graph.tasks[i].estimate.total == with.graph.tasks[i].estimate.total;
    EXPECT_TRUE(same || before.graph.tasks[i].category == Category::kGemm) << before.graph.tasks[i].name;
    changed += same ? 0 : 1;
  }
  EXPECT_GT(changed, 2);
  EXPECT_EQ(with.notes.size(), before.notes.size() + 1);
}

}  // namespace
}  // namespace portolan
