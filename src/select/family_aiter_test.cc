#include "select/family_aiter.h"

#include <gtest/gtest.h>

#include <string>

#include "select/test_devices.h"

namespace portolan {
namespace {

GemmKernel FromName(const char* library, const std::string& name, int split = 0) {
  GemmKernel k;
  k.family = KernelFamily::kAiter;
  AiterKernelFromName(library, name, split, &k);
  return k;
}

std::string Generation(const GemmKernel& k) { return AiterGenerations()[static_cast<size_t>(k.extra[kGeneration])]; }

TEST(AiterNames, FlyDsl) {
  const GemmKernel k = FromName("flydsl",
                                "flydsl_gemm4_abf16_wbf16_bf16_t32x64x128_split_k8_block_m_warp1_block_n_warp2_block_k_"
                                "warp2_async_copyTrue_b_to_ldsTrue_b_preshuffleFalse_c_to_ldsFalse_gfx950");
  EXPECT_EQ(Generation(k), "flydsl_gemm4");
  EXPECT_EQ(k.tile_m, 32);
  EXPECT_EQ(k.tile_n, 64);
  EXPECT_EQ(k.tile_k, 128);
  EXPECT_EQ(k.split_k, 8);
  EXPECT_EQ(k.waves, 4);
  const GemmKernel h =
      FromName("flydsl", "flydsl_hgemm_abf16_wbf16_bf16_t16x64x256x5_ks3_w1x2x1_bias0_ktail0_gm0_pft_gfx950");
  EXPECT_EQ(Generation(h), "flydsl_hgemm");
  EXPECT_EQ(h.stages, 5);
  EXPECT_EQ(h.split_k, 3);
  const GemmKernel mx = FromName("flydsl", "flydsl_mxpsh_32x128x256_F8_F8_B16_w2_x0_sk28", 28);
  EXPECT_EQ(Generation(mx), "flydsl_mx_split");
  EXPECT_EQ(mx.split_k, 28);
  EXPECT_EQ(Generation(FromName("flydsl", "flydsl_mxpsh_32x128x256_F8_F8_B16_w2_x0")), "flydsl_mx");
}

TEST(AiterNames, ComposableKernel) {
  const GemmKernel blocks = FromName("ck",
                                     "a8w8_blockscale_bpreshuffle_1x128x128_256x64x256x128_16x16_16x16_8x32x1_8x32x1_"
                                     "1x32x1x8_8_2x1_intrawave_v1",
                                     2);
  EXPECT_EQ(Generation(blocks), "ck_block_preshuffle_v1");
  EXPECT_EQ(blocks.tile_m, 64);
  EXPECT_EQ(blocks.tile_n, 256);
  EXPECT_EQ(blocks.waves, 4);
  EXPECT_EQ(blocks.split_k, 4);  // log2 of the parts
  const GemmKernel tile =
      FromName("cktile", "a8w8_bpreshuffle_cktile_0x0x8x4x1x0x0x0x0x2_16x64x512_1x4x1_16x16x128_default");
  EXPECT_EQ(Generation(tile), "cktile_128");
  EXPECT_EQ(tile.tile_k, 512);
  EXPECT_EQ(tile.extra[kVariantA], 2);
}

TEST(AiterNames, Others) {
  const GemmKernel assembly = FromName("asm", "_ZN5aiter39bf16gemm_fp32bf16_tn_48x64_splitk_cleanE", 7);
  EXPECT_EQ(Generation(assembly), "asm_split");
  EXPECT_EQ(assembly.tile_m, 48);
  EXPECT_EQ(assembly.split_k, 7);
  const GemmKernel opus = FromName("opus", "opus_gemm_flatmm_splitk_256x32x64x128_2x1_16x16x32_0x0x0_wgpcu2", 9);
  EXPECT_EQ(opus.tile_n, 64);
  EXPECT_EQ(opus.split_k, 9);
  const GemmKernel blas = FromName("hipblaslt", "Cijk_Alik_Bljk_BBS_BH_MT96x16x256_MI16x16x1_GSU0_SK3_WG32_4_1");
  EXPECT_EQ(blas.tile_n, 96);  // BLAS counts the other way round
  EXPECT_EQ(blas.tile_m, 16);
  EXPECT_EQ(blas.stream_k, 3);
  EXPECT_EQ(Generation(FromName("torch", "native")), "torch");
  EXPECT_EQ(Generation(FromName("new", "nothing_known")), "other");
}

TEST(Aiter, SplittingHelpsSkinnyProducts) {
  Accelerator device = RoundAccelerator();
  device.hbm_peak = BytesPerSecond(1e14);  // latency decides
  const auto model = kAiterFamily.make(device, InitialConstants(KernelFamily::kAiter, DType::kBf16));
  GemmKernel whole = FromName("flydsl", "flydsl_mxpsh_32x128x256_F8_F8_B16_w2_x0");
  GemmKernel split = FromName("flydsl", "flydsl_mxpsh_32x128x256_F8_F8_B16_w2_x0_sk8", 8);
  const GemmProblem skinny = Product(16, 512, 65536);
  EXPECT_LT(model->Score(skinny, split).total, model->Score(skinny, whole).total);
  EXPECT_GT(model->Score(skinny, split).split_reduction, 0.0);
  GemmProblem backward = skinny;
  backward.layout = GemmLayout::kNT;
  EXPECT_FALSE(model->Supports(backward, whole));
}

TEST(Aiter, ALibrarysOwnChoiceIsSlowerOnFewerUnits) {
  const auto model = kAiterFamily.make(RoundAccelerator(), InitialConstants(KernelFamily::kAiter, DType::kBf16));
  const GemmKernel library = FromName("torch", "native");
  GemmProblem problem = Product(8192, 8192, 8192);  // arithmetic decides
  const double whole = model->Score(problem, library).matrix;
  problem.usable_units = 25;  // a quarter of the 100
  const KernelTerms quarter = model->Score(problem, library);
  EXPECT_NEAR(quarter.matrix, 4.0 * whole, 1e-9 * whole);
  EXPECT_GE(quarter.total, 4.0 * whole);
}

TEST(Aiter, PreparedAgreesToTheLastBit) {
  const auto model = kAiterFamily.make(RoundAccelerator(), InitialConstants(KernelFamily::kAiter, DType::kBf16));
  const std::vector<GemmKernel> kernels = {FromName("torch", "native"),
                                           FromName("hipblaslt", "Cijk_MT96x16x256_GSU0_SK3_WG32_4_1"),
                                           FromName("asm", "_ZN5aiter39bf16gemm_fp32bf16_tn_48x64_splitk_cleanE", 7)};
  const auto scorer = model->Prepare(kernels);
  std::vector<double> seconds(kernels.size());
  const GemmProblem problem = Product(100, 3000, 7000);
  scorer->ScoreAll(problem, seconds);
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(seconds[i], model->Score(problem, kernels[i]).total) << i;
    EXPECT_EQ(seconds[i], scorer->Terms(problem, i).total) << i;
  }
}

}  // namespace
}  // namespace portolan
