#include "select/family_tensile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "select/test_devices.h"

namespace portolan {
namespace {

// Eight dies of 32 units, 4096 flops a clock and unit; memory-side cache of 256 MB.
Accelerator EightDies() {
  Accelerator a = RoundAccelerator();
  a.vendor = "amd";
  a.isa = "gfx950";
  a.compute_units = 256;
  a.dies = 8;
  a.clock_boost = Hertz(2e9);
  a.peak_matrix[DType::kBf16] = FlopsPerSecond(256 * 4096 * 2e9);
  a.sustained_matrix[DType::kBf16] = FlopsPerSecond(256 * 4096 * 1e9);
  a.shared_memory_per_unit = Bytes(160 * 1024);
  a.mall = Bytes(256e6);
  a.mall_rate = BytesPerSecond(8e12);
  a.hbm_peak = BytesPerSecond(8e12);
  a.hbm_sustained = BytesPerSecond(5e12);
  return a;
}

GemmKernel Square() {
  GemmKernel k;
  k.family = KernelFamily::kTensile;
  k.tile_m = k.tile_n = 256;
  k.tile_k = 64;
  k.instruction_m = k.instruction_n = 16;
  k.wave_tile_m = k.wave_tile_n = 8;
  k.waves = 4;
  k.stream_k = 3;
  k.direct_to_lds_a = k.direct_to_lds_b = 1;
  k.local_prefetch = 1;
  k.store_vector = 8;
  k.swizzle = 8;
  k.extra[kRowsAtOnce] = 32;
  k.extra[kTransposeLds] = 1;
  return k;
}

std::unique_ptr<FamilyModel> Model(const Accelerator& accelerator) {
  return kTensileFamily.make(accelerator, InitialConstants(KernelFamily::kTensile, DType::kBf16));
}

TEST(StreamKGrid, HandSums) {
  EXPECT_EQ(StreamKGrid(512, 64, 256), 256);  // two whole tiles each
  EXPECT_EQ(StreamKGrid(384, 64, 256), 256);  // 384 / 1.5
  EXPECT_EQ(StreamKGrid(592, 56, 256), 237);  // 592 / 2.5 = 236.8
  EXPECT_EQ(StreamKGrid(448, 64, 256), 256);  // 448 / 1.75: no fraction fits
  EXPECT_EQ(StreamKGrid(112, 56, 256), 224);  // two parts
  EXPECT_EQ(StreamKGrid(196, 32, 256), 196);  // 392 would not fit
  EXPECT_EQ(StreamKGrid(56, 32, 256), 224);   // four parts of 8 iterations
  EXPECT_EQ(StreamKGrid(56, 24, 256), 168);   // three parts of 8: four would leave 6
}

TEST(PanelsOfDie, HandSums) {
  // 256 work-groups on tiles of 32 x 32, eight columns walked together: the block in flight is 32 rows x 8 columns.
  // Round robin over 8 dies gives each die one column and all 32 rows; chunks give it 8 columns x 4 rows.
  const DiePanels round = PanelsOfDie(32, 32, 256, 1, 8, 8, WorkGroupOrder::kRoundRobin);
  EXPECT_DOUBLE_EQ(round.rows, 32);
  EXPECT_DOUBLE_EQ(round.columns, 1);
  const DiePanels chunked = PanelsOfDie(32, 32, 256, 1, 8, 8, WorkGroupOrder::kChunked);
  EXPECT_DOUBLE_EQ(chunked.rows, 4);
  EXPECT_DOUBLE_EQ(chunked.columns, 8);
  // Eight rows only: four blocks of 8 x 8 are in flight; a die sees a column of each, or half a block.
  const DiePanels wide = PanelsOfDie(8, 400, 256, 1, 8, 8, WorkGroupOrder::kRoundRobin);
  EXPECT_DOUBLE_EQ(wide.rows, 8);
  EXPECT_DOUBLE_EQ(wide.columns, 4);
  // Two parts of K: a chunk holds 16 tiles (8 x 2) and reads them twice, each part its own K.
  const DiePanels split = PanelsOfDie(8, 16, 256, 2, 8, 8, WorkGroupOrder::kChunked);
  EXPECT_DOUBLE_EQ(split.rows, 4);
  EXPECT_DOUBLE_EQ(split.columns, 16);
}

TEST(Tensile, MatrixTermByHand) {
  // 8192 x 8192 x 6400: 1024 tiles on 256 units, 4 x 100 iterations of 2 x 256 x 256 x 64 flops at 4.096 Tflop/s a
  // unit: 400 x 8388608 / 4.096e12 = 819.2 us.
  const KernelTerms terms = Model(EightDies())->Score(Product(8192, 8192, 6400), Square());
  EXPECT_NEAR(terms.matrix, 819.2e-6, 0.1e-6);
  EXPECT_DOUBLE_EQ(terms.split_reduction, 0.0);
  EXPECT_GT(terms.total, terms.matrix);
}

TEST(Tensile, ChunkedDiesReadLess) {
  const auto model = Model(EightDies());
  GemmKernel chunked = Square();
  chunked.xcd_mapping = 8;
  const GemmProblem large = Product(8192, 8192, 8192);
  // 12 panels against 33: the traffic of the memory-side cache in that ratio.
  EXPECT_NEAR(model->Score(large, chunked).mall / model->Score(large, Square()).mall, 12.0 / 33.0, 1e-9);
  EXPECT_LT(model->Score(large, chunked).total, model->Score(large, Square()).total);
}

TEST(Tensile, KnobsCostWhatTheySay) {
  const auto model = Model(EightDies());
  const GemmProblem problem = Product(4096, 8192, 4096);
  const double base = model->Score(problem, Square()).total;
  GemmKernel k = Square();
  k.hand_scheduled = 1;
  EXPECT_LT(model->Score(problem, k).total, base);
  k = Square();
  k.direct_to_lds_a = 0;
  EXPECT_GT(model->Score(problem, k).total, base);
  k = Square();
  k.store_vector = 1;
  EXPECT_GT(model->Score(problem, k).epilogue, model->Score(problem, Square()).epilogue);
  k = Square();
  k.extra[kNonTemporalB] = 4;
  EXPECT_GT(model->Score(problem, k).total, base);
}

TEST(Tensile, GrowsWithEverySize) {
  const auto model = Model(EightDies());
  const double base = model->Score(Product(4096, 4096, 4096), Square()).total;
  EXPECT_GT(model->Score(Product(8192, 4096, 4096), Square()).total, base);
  EXPECT_GT(model->Score(Product(4096, 8192, 4096), Square()).total, base);
  EXPECT_GT(model->Score(Product(4096, 4096, 8192), Square()).total, base);
}

TEST(Tensile, FewTilesAreSplit) {
  const KernelTerms terms = Model(EightDies())->Score(Product(2048, 3584, 3584), Square());
  EXPECT_GT(terms.split_reduction, 0.0);
}

TEST(Tensile, RefusesWhatDoesNotFit) {
  const auto model = Model(EightDies());
  GemmKernel k = Square();
  k.tile_k = 256;  // 512 rows x 512 bytes x 2 buffers = 512 KiB
  EXPECT_FALSE(model->Supports(Product(4096, 4096, 4096), k));
  GemmProblem fp8 = Product(4096, 4096, 4096);
  fp8.compute = DType::kFp8E4m3;
  EXPECT_FALSE(model->Supports(fp8, Square()));
}

TEST(Tensile, PreparedAgreesToTheLastBit) {
  const auto model = Model(EightDies());
  std::vector<GemmKernel> kernels = {Square(), Square(), Square()};
  kernels[1].xcd_mapping = 8;
  kernels[2].tile_k = 256;
  const auto scorer = model->Prepare(kernels);
  std::vector<double> seconds(kernels.size());
  const GemmProblem problem = Product(3000, 5000, 7000, GemmLayout::kNT);
  scorer->ScoreAll(problem, seconds);
  EXPECT_EQ(seconds[0], model->Score(problem, kernels[0]).total);
  EXPECT_EQ(seconds[1], model->Score(problem, kernels[1]).total);
  EXPECT_TRUE(std::isinf(seconds[2]));
}

}  // namespace
}  // namespace portolan
