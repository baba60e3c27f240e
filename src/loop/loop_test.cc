#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "loop/optimize.h"
#include "loop/turns.h"

namespace portolan {
namespace {

const char kJob[] = R"(
model:
  model: tiny
  dense_features: 4
  tables:
    - {name: a, rows: 100, dim: 8, lookups: 2}
    - {name: b, rows: 50, dim: 8, lookups: 1}
  blocks:
    - {name: bottom, type: mlp, input: dense, widths: [8]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [16, 1], last_activation: none}
  training: {dense_optimizer: adagrad, embedding_optimizer: adagrad}
recipe: {recipe: r, local_batch: 64, precision: {gemm: fp32, activation: fp32}}
data: {type: synthetic}
steps: 12
eval: {samples: 512}
)";

Job ReadTiny(const std::string& rest = "") {
  const auto find = [](const std::string&, const std::string&) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, "no files here");
  };
  auto job = ReadJob(*YamlValue::Parse(std::string(kJob) + rest, "job.yaml"), find);
  EXPECT_TRUE(job) << (job ? "" : FormatError(job.error()));
  return *job;
}

// A machine on which every call of a layer takes 1 us, a dense optimizer 2 us a call, a lookup 1 ns forward, and 2 ns
// fused or 5 ns separate backward; a row that is not in the cache twice as much.
Calibration ToyMachine() {
  Calibration c;
  c.machine = MachineKey();
  c.date = "2026-12-01";
  c.last_level_bytes = c.kept_bytes = 1e6;
  c.fork_s = c.lookup_call_s = 1e-7;
  c.sort_pass_s = 1e-12;
  c.copy_bytes_per_s = c.copy_one_thread_bytes_per_s = c.cache_bytes_per_s = 1e10;
  c.gemm_flops_per_s = c.gemm_bf16_flops_per_s = c.gemm_one_thread_flops_per_s = 1e11;
  c.probe_s = {1e-4, 1e-4, 1e-4, 1e-4};
  const auto constant = [](size_t axes, double seconds) {
    // One point an axis far above anything asked for: a constant below it.
    return MeasuredGrid{std::vector<std::vector<double>>(axes, {1e12}), {seconds}};
  };
  for (const auto& [name, axes] : CalibratedGrids()) c.grids[name] = constant(axes, 1e-6);
  c.near_table_bytes = c.warm_table_bytes = c.cold_table_bytes = c.far_table_bytes = 1e6;
  c.grids["embedding_forward.fp32.near"] = constant(2, 1e-9);
  // No neighbours: what was touched an hour ago is there.
  c.grids["cache_age"] = {{{1e-4, 1e4, 1e9}}, {1e-5, 1e-5, 2e-5}};
  c.aged_bytes = 1e5;
  c.grids["embedding_fused.lookups"] = c.grids["embedding_separate.lookups"] = constant(3, 1e-9);
  c.grids["embedding_forward.fp32.spilled"] = c.grids["embedding_fused.sgd.spilled"] = constant(2, 2e-9);
  c.grids["dense_fused.adagrad"] = c.grids["dense_separate.adagrad"] = constant(1, 2e-6);
  for (const auto& [level, factor] : {std::pair{".warm", 1.0}, {".cold", 2.0}}) {
    for (const char* format : {"fp32", "bf16", "fp16"}) {
      c.grids[std::string("embedding_forward.") + format + level] = constant(2, 1e-9 * factor);
    }
    for (const char* optimizer : {"sgd", "adagrad", "rowwise_adagrad", "bf16", "fp16"}) {
      c.grids[std::string("embedding_fused.") + optimizer + level] = constant(2, 2e-9 * factor);
      c.grids[std::string("embedding_separate.") + optimizer + level] = constant(2, 5e-9 * factor);
    }
  }
  return c;
}

std::vector<Batch> ReadBatches(const Job& job, int count) {
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  const auto reader = *MakeReader(job.data, plan.Schema(job.model), DataSplit::kTrain, 0);
  std::vector<Batch> batches(static_cast<size_t>(count));
  for (Batch& batch : batches) EXPECT_TRUE(reader->Next(64, &batch));
  return batches;
}

TEST(PriceStep, AddsWhatTheLayersCall) {
  const Job job = ReadTiny();
  const std::vector<Batch> batches = ReadBatches(job, 4);
  const StepPrice price = *PriceRecipe(job, job.recipe, batches, ToyMachine());
  // Three linear layers of product and bias; join and dot interaction, inputs of the join in place: 3 * 2 + 1 calls.
  EXPECT_NEAR(price.Of(StepPrice::kDenseForward), 7e-6, 1e-12);
  // Bias gradient and weight gradient a layer, input gradients of all but the first; dot; loss.
  EXPECT_NEAR(price.Of(StepPrice::kDenseBackward), (3 * 2 + 2 + 1 + 1) * 1e-6, 1e-12);
  EXPECT_NEAR(price.Of(StepPrice::kDenseOptimizer), 2e-6, 1e-12);
  // 64 samples with 3 lookups and one loop; at most 10 rows that no batch before had.
  EXPECT_NEAR(price.Of(StepPrice::kEmbeddingForward), 192 * 1e-9 + 1e-7, 10e-9);
  EXPECT_EQ(price.Of(StepPrice::kGradientNorm), 0);
  EXPECT_NEAR(price.Total(),
              price.Of(StepPrice::kDenseForward) + price.Of(StepPrice::kDenseBackward) +
                  price.Of(StepPrice::kDenseOptimizer) + price.Of(StepPrice::kEmbeddingForward) +
                  price.Of(StepPrice::kEmbeddingBackward),
              1e-15);
}

TEST(PriceStep, ThePortCallsMoreAndCostsMore) {
  const Job job = ReadTiny();
  const std::vector<Batch> batches = ReadBatches(job, 4);
  const Calibration machine = ToyMachine();
  const Recipe port = PortedRecipe(job.recipe);
  const StepPrice ported = *PriceRecipe(job, port, batches, machine),
                  fused = *PriceRecipe(job, job.recipe, batches, machine);
  for (size_t phase = 0; phase < fused.Phases().size(); ++phase) {
    EXPECT_GE(ported.Phases()[phase].second, fused.Phases()[phase].second) << fused.Phases()[phase].first;
  }
  // Six parameter tensors, weights and biases of three layers, in place of one pass.
  EXPECT_NEAR(ported.Of(StepPrice::kDenseOptimizer), 12e-6, 1e-12);
}

TEST(PriceStep, AClassThatIsSlowerDelaysItsOwnKernels) {
  const Job job = ReadTiny();
  StepPrice price = *PriceRecipe(job, job.recipe, ReadBatches(job, 4), ToyMachine());
  const double forward = price.Of(StepPrice::kDenseForward), rows = price.Of(StepPrice::kEmbeddingBackward);
  price.Scale({2, 1, 1, 3});
  // Of 7 calls three are products and one is the dot interaction; each 1 us.
  EXPECT_NEAR(price.Of(StepPrice::kDenseForward), forward + 4e-6, 1e-12);
  EXPECT_NEAR(price.Of(StepPrice::kEmbeddingBackward), 3 * rows, 1e-12);
}

TEST(CountLookups, DistinctAndColdRowsByHand) {
  const Job job = ReadTiny();
  std::vector<std::string> notes;
  const NetworkPlan plan = *PlanNetwork(job.model, *OptionsFromRecipe(job.model, job.recipe, &notes));
  Batch batch;  // two samples; table a: rows 1 1, 1 2; table b: rows 5, 6
  batch.size = 2;
  batch.ids = {1, 1, 1, 2, 5, 6};
  batch.offsets = {0, 2, 4, 5, 6};
  Batch other = batch;
  other.ids = {1, 1, 1, 9, 5, 7};
  const std::vector<TableLookups> counts = CountLookups(plan, {batch, other}, {1e9, 1e9}, 0);
  EXPECT_DOUBLE_EQ(counts[0].lookups, 4);
  EXPECT_DOUBLE_EQ(counts[0].bags, 2);
  EXPECT_DOUBLE_EQ(counts[0].distinct, 2);
  EXPECT_DOUBLE_EQ(counts[0].aged[0], 0.5);  // row 9 is new, row 1 is of the batch before
  EXPECT_DOUBLE_EQ(counts[1].aged[0], 0.5);  // row 7 is new
  EXPECT_DOUBLE_EQ(counts[0].InCache(), 0.5);
  EXPECT_DOUBLE_EQ(counts[0].near, 0.5);  // row 1 comes three times in four lookups: twice again
  // A cache smaller than what one batch touches keeps nothing, and one of less than a row is no use within a batch.
  const std::vector<TableLookups> small = CountLookups(plan, {batch, other}, {10, 10}, 0);
  EXPECT_DOUBLE_EQ(small[0].InCache(), 0);
  EXPECT_DOUBLE_EQ(small[0].near, 0);
}

TEST(Calibration, LosesWithAgeWhatNeighboursTake) {
  Calibration c = ToyMachine();
  EXPECT_EQ(c.Lost(10), 0);
  // Half gone after 2 ms: passes take 10 us with everything there, 30 us with nothing.
  c.grids["cache_age"] = {{{1e-3, 2e-3, 4e-3, 1e9}}, {10e-6, 20e-6, 30e-6, 30e-6}};
  EXPECT_EQ(c.Lost(5e-4), 0);
  EXPECT_NEAR(c.Lost(2e-3), 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(c.MissSecondsPerByte(), 20e-6 / 1e5);
  EXPECT_NEAR(c.Lost(1), 1, 1e-9);
}

TEST(PriceStep, ALongerStepFindsLessInTheCache) {
  const Job job = ReadTiny();
  const std::vector<Batch> batches = ReadBatches(job, 4);
  const Calibration kept = ToyMachine();
  Calibration lost = ToyMachine();
  // 10 us a pass of 100,000 bytes more, so 1e-10 s a byte. Gone within 1 us: every tensor of the last pass over it,
  // some 20 us ago.
  lost.grids["cache_age"] = {{{1e-7, 1e-6, 1e9}}, {1e-5, 2e-5, 2e-5}};
  const StepPrice with = *PriceRecipe(job, job.recipe, batches, kept),
                  without = *PriceRecipe(job, job.recipe, batches, lost);
  for (size_t phase = 0; phase < with.Phases().size(); ++phase) {
    EXPECT_LE(with.Phases()[phase].second, without.Phases()[phase].second) << with.Phases()[phase].first;
  }
  // Weights, gradients and state: 3 and 2 passes over bottom 4 x 8 + 8, top 11 x 16 + 16 and 16 + 1 numbers.
  const double parameters = (4 * 8 + 8) + (11 * 16 + 16) + (16 + 1);
  EXPECT_NEAR(without.Of(StepPrice::kDenseOptimizer) - with.Of(StepPrice::kDenseOptimizer), 4 * parameters * 5e-10,
              1e-12);
}

TEST(PlanOnCpu, TakesWhatSavesAndOnlyWhatIsAllowed) {
  const Job job = ReadTiny();
  const std::vector<Batch> batches = ReadBatches(job, 4);
  Calibration machine = ToyMachine();
  const Recipe port = PortedRecipe(job.recipe);
  const CpuPlan exact = *PlanOnCpu(job, port, batches, machine);
  std::set<std::string> taken;
  double at = 1e9;
  for (const PricedChange& change : exact.changes) {
    taken.insert(change.change.rule);
    EXPECT_LT(change.after_s, change.before_s);
    EXPECT_LE(change.before_s, at);
    at = change.after_s;
  }
  EXPECT_EQ(taken, (std::set<std::string>{"compile", "embedding_update", "merge_tables"}));
  // bf16 products at half the time are taken where the job allows them, and not otherwise.
  for (const char* layout : {"nt", "nn", "tn"}) machine.grids[std::string("gemm.bf16.") + layout].seconds[0] = 5e-7;
  const CpuPlan without = *PlanOnCpu(job, port, batches, machine);
  EXPECT_EQ(without.recipe.gemm, DType::kFp32);
  ASSERT_FALSE(without.not_allowed.empty());
  EXPECT_EQ(without.not_allowed[0].change.rule, "gemm_dtype");
  EXPECT_LT(without.not_allowed[0].after_s, without.not_allowed[0].before_s);
  EXPECT_EQ(PlanOnCpu(ReadTiny("allow: [gemm_dtype]\n"), port, batches, machine)->recipe.gemm, DType::kBf16);
}

TEST(Optimize, TrainsBothOnTheSameSamples) {
  const Job job = ReadTiny();
  OptimizeOptions options;
  options.rounds = 3;
  const auto result = Optimize(job, ToyMachine(), options);
  ASSERT_TRUE(result) << FormatError(result.error());
  EXPECT_EQ(result->samples, 12 * 64);
  EXPECT_TRUE(result->has_eval);
  EXPECT_GT(result->baseline.measured_s, 0);
  EXPECT_GT(result->codesigned.measured_s, 0);
  // Without a change of the maths both learn the same.
  EXPECT_NEAR(result->baseline.auc, result->codesigned.auc, 1e-4);
  EXPECT_NEAR(result->baseline.ne, result->codesigned.ne, 1e-4);
  EXPECT_EQ(result->changes.size(), 3u);
  for (const MeasuredChange& change : result->changes) EXPECT_GT(change.alone_measured, 0);
}

TEST(CalibrationFile, ComesBackAndIsRefusedWhenBroken) {
  const std::string folder = (std::filesystem::temp_directory_path() / "portolan_calibration_test").string();
  std::filesystem::remove_all(folder);
  const Calibration written = ToyMachine();
  ASSERT_TRUE(WriteCalibration(written, folder));
  const auto read = ReadCalibration(folder);
  ASSERT_TRUE(read) << FormatError(read.error());
  EXPECT_EQ(read->machine, written.machine);
  EXPECT_EQ(read->grids.size(), written.grids.size());
  EXPECT_EQ(read->Grid("dot_forward").seconds, written.Grid("dot_forward").seconds);
  EXPECT_DOUBLE_EQ(read->fork_s, written.fork_s);
  // Of this machine and young enough: nothing is measured.
  const auto kept = CalibrationOfThisMachine(folder, 1e6, [](const std::string&, double) { FAIL() << "measured"; });
  ASSERT_TRUE(kept);
  std::ofstream(folder + "/calibration/cpu.yaml", std::ios::app) << "  more: {axes: [[1, 2]], seconds: [1]}\n";
  const auto broken = ReadCalibration(folder);
  ASSERT_FALSE(broken);
  EXPECT_NE(FormatError(broken.error()).find("must have 2 seconds"), std::string::npos) << FormatError(broken.error());
  Calibration less = written;
  less.grids.erase("gemm.bf16.nn");
  ASSERT_TRUE(WriteCalibration(less, folder));
  const auto incomplete = ReadCalibration(folder);
  ASSERT_FALSE(incomplete);
  EXPECT_NE(FormatError(incomplete.error()).find("gemm.bf16.nn: required"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace portolan
