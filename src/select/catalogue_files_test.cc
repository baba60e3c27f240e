#include "select/catalogue_files.h"

#include <gtest/gtest.h>

#include "hw/catalogue.h"
#include "select/constants.h"
#include "select/test_devices.h"

namespace portolan {
namespace {

constexpr DType kFormats[] = {DType::kFp64,  DType::kFp32,    DType::kTf32,    DType::kFp16,
                              DType::kBf16,  DType::kFp8E4m3, DType::kFp8E5m2, DType::kMxFp8,
                              DType::kMxFp6, DType::kMxFp4,   DType::kInt8};

class ShippedKernelsTest : public testing::TestWithParam<const char*> {};

// Every format has kernels on every vendor's chip, and one of them runs a plain product; where the chip has no matrix
// instruction for the format, a note says so.
TEST_P(ShippedKernelsTest, EveryFormatIsPriced) {
  const auto hardware = Catalogue::Load({"data"});
  ASSERT_TRUE(hardware) << FormatError(hardware.error());
  const auto accelerator = hardware->FindAccelerator(GetParam());
  ASSERT_TRUE(accelerator) << FormatError(accelerator.error());
  const auto constants = LoadGemmConstants({"data"});
  ASSERT_TRUE(constants);
  for (const DType format : kFormats) {
    const auto shipped = LoadShippedKernels({"data"}, **accelerator, format);
    ASSERT_TRUE(shipped) << DTypeName(format) << ": " << FormatError(shipped.error());
    std::string notes;
    for (const std::string& note : shipped->notes) notes += note + "\n";
    const bool missing = (*accelerator)->sustained_matrix[format].value <= 0.0;
    EXPECT_EQ(notes.find("matrix instruction") != std::string::npos, missing) << DTypeName(format) << notes;
    const auto selector = Selector::Create(**accelerator, shipped->catalogue, *constants);
    ASSERT_TRUE(selector) << FormatError(selector.error());
    GemmProblem p = Product(4096, 1024, 512);
    p.compute = format;
    p.a = p.b = format == DType::kTf32 ? DType::kFp32 : format;
    const RankedKernel best = selector->Best(p);
    EXPECT_GE(best.index, 0) << DTypeName(format) << " on " << GetParam();
    EXPECT_GT(best.time.value, 0.0);
    EXPECT_LT(best.time.value, 0.1);
  }
}
INSTANTIATE_TEST_SUITE_P(Chips, ShippedKernelsTest, testing::Values("h200", "b200", "a100", "mi300x", "mi355x"));

TEST(ShippedKernels, SenselessProblemsHaveNoKernel) {
  const auto hardware = Catalogue::Load({"data"});
  ASSERT_TRUE(hardware);
  const Accelerator& h200 = hardware->accelerators().at("h200");
  auto shipped = LoadShippedKernels({"data"}, h200, DType::kBf16);
  ASSERT_TRUE(shipped);
  const auto selector = Selector::Create(h200, std::move(shipped->catalogue));
  ASSERT_TRUE(selector);
  const int64_t huge = int64_t{1} << 40;
  for (const GemmProblem& p : {Product(0, 1, 1), Product(1, -5, 1), Product(1, 1, 0), Product(huge, huge, 1),
                               Product(1, 1, 2 * huge), Product(INT64_MAX, INT64_MAX, INT64_MAX)}) {
    EXPECT_EQ(selector->Best(p).index, -1) << p.m << " " << p.n << " " << p.k;
    EXPECT_TRUE(selector->Rank(p, 3).empty());
  }
  // The largest that is accepted.
  EXPECT_GE(selector->Best(Product(int64_t{1} << 24, int64_t{1} << 24, huge)).index, 0);
}

}  // namespace
}  // namespace portolan
