#include <gtest/gtest.h>

#include "select/family_cublaslt.h"
#include "select/family_triton.h"
#include "select/test_devices.h"

namespace portolan {
namespace {

TEST(CublasLtIdsTest, TilesOfTheThreePartsOfTheEnumeration) {
  const auto is = [](int id, int rows, int columns) {
    const auto tile = CublasLtTile(id);
    return tile && tile->rows == rows && tile->columns == columns;
  };
  EXPECT_TRUE(is(20, 128, 128));
  EXPECT_TRUE(is(23, 128, 256));
  EXPECT_TRUE(is(36, 8, 128));
  EXPECT_TRUE(is(116, 64, 192));
  EXPECT_TRUE(is(209, 192, 192));
  EXPECT_TRUE(is(311, 768, 64));
  EXPECT_TRUE(is(312, 64, 16));
  EXPECT_TRUE(is(400, 128, 80));
  EXPECT_TRUE(is(573, 512, 8));
  EXPECT_TRUE(is(630, 768, 80));
  EXPECT_TRUE(is(634, 512, 1024));
  EXPECT_FALSE(CublasLtTile(0));
  EXPECT_FALSE(CublasLtTile(635));
  EXPECT_FALSE(CublasLtTile(-1));
}

TEST(CublasLtIdsTest, ClustersAndStages) {
  EXPECT_EQ(CublasLtCluster(9).rows, 2);
  EXPECT_EQ(CublasLtCluster(9).columns, 4);
  EXPECT_EQ(CublasLtCluster(0).rows, 1);
  EXPECT_EQ(CublasLtCluster(999).columns, 1);
  EXPECT_EQ(CublasLtStages(9), 3);   // 32x3
  EXPECT_EQ(CublasLtStages(15), 3);  // 64x3
  EXPECT_EQ(CublasLtStages(35), 0);  // AUTO
}

TEST(CublasLtFamilyTest, BulkCopiesNeedAlignedRows) {
  const auto model = kCublasLtFamily.make(RoundAccelerator(), InitialConstants(KernelFamily::kCublasLt, DType::kBf16));
  GemmKernel kernel;
  kernel.algo = 66;
  kernel.tile_id = 20;
  SetCublasLtIds(&kernel);
  EXPECT_TRUE(model->Supports(Product(4096, 1024, 480), kernel));
  EXPECT_FALSE(model->Supports(Product(4096, 1024, 479), kernel));
  kernel.algo = 24;
  EXPECT_TRUE(model->Supports(Product(4096, 1024, 479), kernel));
}

TEST(TritonFamilyTest, SharedMemoryAndRegistersBoundTheTiles) {
  const auto model = kTritonFamily.make(RoundAccelerator(), InitialConstants(KernelFamily::kTriton, DType::kBf16));
  GemmKernel kernel;
  kernel.tile_m = 128;
  kernel.tile_n = 256;
  kernel.tile_k = 64;
  kernel.waves = 8;
  kernel.stages = 4;  // 384 x 64 x 2 x 4 = 192 KiB
  EXPECT_TRUE(model->Supports(Product(512, 512, 512), kernel));
  kernel.stages = 5;  // 240 KiB
  EXPECT_FALSE(model->Supports(Product(512, 512, 512), kernel));
  kernel.stages = 3;
  kernel.waves = 4;  // 256 accumulators a thread
  EXPECT_FALSE(model->Supports(Product(512, 512, 512), kernel));
}

TEST(FamilyTest, ConstantsAreNamedOnceAndInsideTheirBounds) {
  for (const FamilyEntry* family : {&kTritonFamily, &kCublasLtFamily}) {
    std::map<std::string, int> names;
    for (const ConstantSpec& spec : family->specs) {
      EXPECT_EQ(++names[spec.name], 1) << spec.name;
      EXPECT_LE(spec.low, spec.initial) << spec.name;
      EXPECT_GE(spec.high, spec.initial) << spec.name;
    }
  }
}

}  // namespace
}  // namespace portolan
