#include "select/family_cpu.h"

#include <gtest/gtest.h>

#include "select/test_devices.h"

namespace portolan {
namespace {

GemmKernel Call(int threads, int packed, int parts) {
  GemmKernel k;
  k.family = KernelFamily::kCpu;
  k.compute = DType::kBf16;
  k.extra[0] = static_cast<int16_t>(threads);
  k.extra[1] = static_cast<int16_t>(packed);
  k.extra[2] = static_cast<int16_t>(parts);
  return k;
}

// RoundAccelerator: 100 cores of 1 TFLOP/s, 50 GB/s; 25 cores saturate the memory.
class CpuFamily : public testing::Test {
 protected:
  std::unique_ptr<FamilyModel> model_ =
      kCpuFamily.make(RoundAccelerator(), InitialConstants(KernelFamily::kCpu, DType::kBf16));
};

TEST_F(CpuFamily, HandSum) {
  // 3200 x 64 x 1000: 100 blocks on 100 cores, one round of 4.096e6 flops at 0.9 TFLOP/s = 4.551 us.
  // hbm: (6.4e6 + 1.28e5 + 4.096e5) / 5e10 = 138.75 us; plain weights: 2 x 1.28e5 / 5e10 = 5.12 us.
  const KernelTerms packed = model_->Score(Product(3200, 64, 1000), Call(0, 1, 1));
  EXPECT_NEAR(packed.matrix, 4.551e-6, 1e-9);
  EXPECT_NEAR(packed.hbm, 138.752e-6, 1e-9);
  EXPECT_DOUBLE_EQ(packed.prologue, 0.0);
  const KernelTerms plain = model_->Score(Product(3200, 64, 1000), Call(0, 0, 1));
  EXPECT_NEAR(plain.total - packed.total, 5.12e-6, 1e-9);
}

TEST_F(CpuFamily, ThreadsHelpLargeProductsAndHurtTinyOnes) {
  EXPECT_LT(model_->Score(Product(8192, 1024, 1024), Call(100, 1, 1)).total,
            model_->Score(Product(8192, 1024, 1024), Call(10, 1, 1)).total);
  EXPECT_GT(model_->Score(Product(8, 64, 16), Call(100, 1, 1)).total,
            model_->Score(Product(8, 64, 16), Call(25, 1, 1)).total);
}

TEST_F(CpuFamily, LowersFp32OnRequestOnly) {
  GemmProblem fp32 = Product(512, 512, 512);
  fp32.a = fp32.b = fp32.d = fp32.compute = DType::kFp32;
  EXPECT_TRUE(model_->Supports(fp32, Call(0, 1, 1)));
  EXPECT_GT(model_->Score(fp32, Call(0, 1, 1)).prologue, 0.0);  // A is converted
  GemmProblem fp16 = fp32;
  fp16.compute = DType::kFp16;
  EXPECT_FALSE(model_->Supports(fp16, Call(0, 1, 1)));
}

}  // namespace
}  // namespace portolan
