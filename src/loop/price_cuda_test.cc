#include "loop/price_cuda.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/job.h"
#include "loop/optimize_cuda.h"

namespace portolan {
namespace {

Result<std::string> NoFile(const std::string&, const std::string& name) {
  return MakeError(ErrorCode::kNotFound, name);
}

Job SmallJob() {
  const char* const text = R"(
model:
  model: small
  dense_features: 13
  tables:
    - {name: a, rows: 100, dim: 16, lookups: 2}
    - {name: b, rows: 1000, dim: 16, lookups: 1}
  blocks:
    - {name: joined, type: concat, inputs: [dense, embeddings]}
    - {name: top, type: mlp, input: joined, widths: [32, 1], last_activation: none}
  training: {dense_optimizer: adagrad, embedding_optimizer: adagrad}
recipe: {recipe: r, local_batch: 64, precision: {gemm: fp32, activation: fp32}}
data: {type: synthetic}
steps: 1
allow: [gemm_dtype, row_dtype]
)";
  const Result<Job> job = ReadJob(*YamlValue::Parse(text, "job"), NoFile);
  EXPECT_TRUE(job) << job.error().message;
  return *job;
}

// Every grid has one point, so that a time is the point's, times what an extent is beyond it.
CudaCalibration Flat() {
  CudaCalibration c;
  c.device = "a GPU, CUDA 13.0";
  c.date = "2026-12-01";
  c.l2_bytes = 1e6;
  c.copy_bytes_per_s = 1e12;
  c.step_s = 1e-3;
  const auto grid = [&](const std::string& name, size_t axes, double seconds) {
    c.grids[name] = {std::vector<std::vector<double>>(axes, {1e9}), {seconds}};
  };
  for (const std::string type : {"fp32", "bf16"}) {
    for (const char* kernel :
         {"activation_forward.", "activation_backward.", "copy.", "logits_forward.", "logits_backward.", "input."}) {
      grid(kernel + type, 2, 1e-6);
    }
    grid("dense_optimizer.adagrad." + type, 1, 2e-6);
    for (const std::string row : {"fp32", "bf16"}) {
      grid("embedding_forward." + row + "." + type + ".warm", 3, 10e-6);
      grid("embedding_forward." + row + "." + type + ".cold", 3, 30e-6);
      grid("embedding_backward.adagrad." + row + "." + type, 3, 40e-6);
    }
  }
  for (const std::string math : {"fp32.", "tf32.", "bf16."}) {
    for (const char* layout : {"nt", "nn", "tn"}) grid("gemm." + math + layout, 3, math == "bf16." ? 50e-6 : 100e-6);
  }
  grid("loss", 1, 3e-6);
  grid("sort", 2, 20e-6);
  return c;
}

std::vector<Batch> OneBatch(const Job& job) {
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  const auto reader = *MakeReader(job.data, plan.Schema(job.model), DataSplit::kTrain, 0);
  std::vector<Batch> batches(1);
  EXPECT_TRUE(reader->Next(plan.options.batch, batches.data()));
  return batches;
}

TEST(PriceCuda, AddsUpWhatTheStepQueues) {
  const Job job = SmallJob();
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  const std::vector<CudaTableLookups> lookups = {{128, 70, 70, 64}, {64, 60, 60, 64}};
  const auto price = PriceCudaStep(plan, CudaMath::kFp32, lookups, Flat());
  ASSERT_TRUE(price) << price.error().message;
  double sum = 0;
  for (const auto& [name, seconds] : price->operations) sum += seconds;
  // Forward: a lookup is cold in 130 of 192 cases: 10 + 20 * 130 / 192 us; the sort 20 us, hidden behind what the
  // layers take: one product (100 us), the join of 13 dense numbers (1 us) and the logits (1 us).
  EXPECT_NEAR(price->operations.front().second, 10e-6 + 20e-6 * 130 / 192, 1e-9);
  EXPECT_NEAR(price->step_s, sum - 20e-6 + 1e-3, 1e-9);
  // Backward of the layer below the head: a weight gradient alone, for nobody wants its input's gradient but the rows.
  const auto of = [&](const std::string& name) {
    for (const auto& [known, seconds] : price->operations) {
      if (known == name) return seconds;
    }
    return 0.0;
  };
  EXPECT_NEAR(of("linear"), 100e-6, 1e-9);
  EXPECT_NEAR(of("linear weight gradient"), 100e-6, 1e-9);
  EXPECT_NEAR(of("linear input gradient"), 100e-6, 1e-9);
  EXPECT_NEAR(of("embedding backward"), 40e-6, 1e-9);
  EXPECT_NEAR(of("dense optimizer"), 2e-6, 1e-9);
}

TEST(PriceCuda, AGridThatIsMissingIsNamed) {
  const Job job = SmallJob();
  CudaCalibration calibration = Flat();
  calibration.grids.erase("gemm.fp32.tn");
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  const auto price = PriceCudaStep(plan, CudaMath::kFp32, {{128, 70, 70, 64}, {64, 60, 60, 64}}, calibration);
  ASSERT_FALSE(price);
  EXPECT_NE(price.error().message.find("gemm.fp32.tn"), std::string::npos) << price.error().message;
}

TEST(PriceCuda, RowsBeyondTheCacheAreMissed) {
  const Job job = SmallJob();
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  const std::vector<Batch> batches = OneBatch(job);
  const auto large = CountCudaLookups(plan, batches, 1e9), none = CountCudaLookups(plan, batches, 1);
  ASSERT_EQ(large.size(), 2u);
  EXPECT_EQ(large[0].lookups, 128);
  EXPECT_EQ(large[0].bags, 64);
  EXPECT_EQ(large[0].missed, large[0].distinct) << "each row once";
  EXPECT_EQ(none[0].missed, none[0].lookups);
  EXPECT_GT(large[0].distinct, 0);
  EXPECT_LE(large[0].distinct, 100);
}

TEST(OptimizeCuda, ProposesWhatTheJobAllows) {
  const Job job = SmallJob();
  const Recipe ported = PortedCudaRecipe(job.recipe);
  EXPECT_EQ(ported.gemm, DType::kTf32);
  const auto changes = ProposeCudaChanges(job.model, ported, job.allow);
  ASSERT_EQ(changes.size(), 2u) << "the optimizer is not allowed to change";
  EXPECT_EQ(changes[0].rule, "gemm_dtype");
  EXPECT_EQ(changes[1].rule, "row_dtype");
  EXPECT_TRUE(ProposeCudaChanges(job.model, ported, {}).empty());
}

TEST(CalibrateCuda, WritesWhatItReads) {
  const std::string folder = testing::TempDir() + "portolan_cuda_calibration";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(WriteCudaCalibration(Flat(), folder));
  const auto read = ReadCudaCalibration(folder);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->device, "a GPU, CUDA 13.0");
  EXPECT_EQ(read->grids.size(), Flat().grids.size());
  EXPECT_EQ(read->grids.at("sort").seconds, Flat().grids.at("sort").seconds);
  EXPECT_FALSE(ReadCudaCalibration(folder + "/none"));
}

}  // namespace
}  // namespace portolan
