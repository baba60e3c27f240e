#include "select/catalogue_error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "select/test_devices.h"

namespace portolan {
namespace {

CatalogueError Entry(KernelFamily family, double select, double kernel_blind) {
  CatalogueError e;
  e.set = "set";
  e.chip = "round";
  e.isa = "sm_90";
  e.family = family;
  e.layouts = {GemmLayout::kTN, GemmLayout::kNT};
  e.n = kLeastShapes;
  e.kernel_error = 0.07;
  e.select = {select, select, 2 * select};
  e.kernel_blind = {kernel_blind, kernel_blind, 2 * kernel_blind};
  return e;
}

TEST(CatalogueErrorTest, SummaryTakesSizes) {
  // Sizes 0.1 0.2 0.3: mean 0.2, median 0.2, the 90th percentile the last.
  const ErrorSummary s = SummaryOf({-0.3, 0.1, 0.2});
  EXPECT_DOUBLE_EQ(s.mean, 0.2);
  EXPECT_DOUBLE_EQ(s.median, 0.2);
  EXPECT_DOUBLE_EQ(s.p90, 0.3);
  EXPECT_EQ(SummaryOf({}).mean, 0.0);
}

TEST(CatalogueErrorTest, EverySetMustBeNoWorse) {
  const GemmProblem problem = Product(256, 256, 256);
  std::vector<CatalogueError> errors = {Entry(KernelFamily::kCublasLt, 0.1, 0.1)};
  EXPECT_EQ(FindQualified(errors, "sm_90", problem), &errors[0]);
  EXPECT_EQ(FindQualified({}, "sm_90", problem), nullptr);
  errors.push_back(Entry(KernelFamily::kCublasLt, 0.11, 0.1));
  EXPECT_EQ(FindQualified(errors, "sm_90", problem), nullptr);
  // One worse figure of three is enough.
  errors[1].select = {0.1, 0.1, 0.21};
  EXPECT_EQ(FindQualified(errors, "sm_90", problem), nullptr);
  // Another kind of rows is not about this problem.
  errors[1].rows = RowKind::kMisaligned;
  EXPECT_EQ(FindQualified(errors, "sm_90", problem), &errors[0]);
  EXPECT_EQ(FindQualified(errors, "sm_90", Product(256, 256, 257)), nullptr);
}

TEST(CatalogueErrorTest, OnlyWhereTheSetHoldsTheProblem) {
  const std::vector<CatalogueError> good = {Entry(KernelFamily::kCublasLt, 0.05, 0.1)};
  EXPECT_EQ(FindQualified(good, "sm_100", Product(256, 256, 256)), nullptr);
  EXPECT_NE(FindQualified(good, "sm_90", Product(256, 256, 256, GemmLayout::kNT)), nullptr);
  EXPECT_EQ(FindQualified(good, "sm_90", Product(256, 256, 256, GemmLayout::kNN)), nullptr);
  GemmProblem other = Product(256, 256, 256);
  other.compute = DType::kFp16;
  EXPECT_EQ(FindQualified(good, "sm_90", other), nullptr);
  std::vector<CatalogueError> taught = good;
  taught[0].taught = true;
  EXPECT_EQ(FindQualified(taught, "sm_90", Product(256, 256, 256)), nullptr);
  std::vector<CatalogueError> few = good;
  few[0].n = kLeastShapes - 1;
  EXPECT_EQ(FindQualified(few, "sm_90", Product(256, 256, 256)), nullptr);
}

TEST(CatalogueErrorTest, TheFamilyWithTheLeastError) {
  const std::vector<CatalogueError> two = {Entry(KernelFamily::kTriton, 0.09, 0.1),
                                           Entry(KernelFamily::kCublasLt, 0.05, 0.1)};
  EXPECT_EQ(FindQualified(two, "sm_90", Product(256, 256, 256)), &two[1]);
}

class CatalogueErrorFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / "portolan_catalogue_error";
    std::filesystem::create_directories(directory_ / "constants");
    path_ = (directory_ / "constants/whole_catalogue.yaml").string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(CatalogueErrorFileTest, WrittenAndReadAgain) {
  CatalogueError entry = Entry(KernelFamily::kCublasLt, 0.0512, 0.1);
  entry.compute = DType::kFp8E4m3;
  entry.rows = RowKind::kMisaligned;
  ASSERT_TRUE(WriteCatalogueErrors({entry}, "2026-11-30", "command", path_));
  const auto read = LoadCatalogueErrors({directory_.string(), "/nowhere"});
  ASSERT_TRUE(read) << FormatError(read.error());
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].set, "set");
  EXPECT_EQ((*read)[0].isa, "sm_90");
  EXPECT_EQ((*read)[0].family, KernelFamily::kCublasLt);
  EXPECT_EQ((*read)[0].compute, DType::kFp8E4m3);
  EXPECT_EQ((*read)[0].rows, RowKind::kMisaligned);
  EXPECT_EQ((*read)[0].layouts, entry.layouts);
  EXPECT_EQ((*read)[0].n, kLeastShapes);
  EXPECT_DOUBLE_EQ((*read)[0].select.mean, 0.0512);
  EXPECT_DOUBLE_EQ((*read)[0].kernel_blind.p90, 0.2);
}

TEST_F(CatalogueErrorFileTest, RefusesWhatItCannotMean) {
  ASSERT_TRUE(WriteCatalogueErrors({Entry(KernelFamily::kCublasLt, 0.05, 0.1)}, "2026-11-30", "command", path_));
  std::string good;
  std::getline(std::ifstream(path_), good, '\0');
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path_) << text;
    return !LoadCatalogueErrors({directory_.string()});
  };
  EXPECT_FALSE(refused("n: 30", "n: 31"));
  EXPECT_TRUE(refused("n: 30", "n: -1"));
  EXPECT_TRUE(refused("taught: false", "taught: perhaps"));
  EXPECT_TRUE(refused("kernel_error: 0.0700", "kernel_error: 0"));
  EXPECT_TRUE(refused("kernel_error: 0.0700", "kernel_error: nan"));
  EXPECT_TRUE(refused("family: cublaslt", "family: other"));
  EXPECT_TRUE(refused("[TN, NT]", "[TT]"));
  EXPECT_TRUE(refused("mean: 0.0500", "mean: -0.0500"));
  EXPECT_TRUE(refused("p90:", "p99:"));
  EXPECT_TRUE(refused("    select: {mean: 0.0500, median: 0.0500, p90: 0.1000}\n", ""));
}

}  // namespace
}  // namespace portolan
