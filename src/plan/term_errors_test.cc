#include "plan/term_errors.h"

#include "plan/test_inputs.h"

namespace portolan {
namespace {

constexpr auto kGemmIndex = static_cast<size_t>(Category::kGemm);
constexpr auto kAttentionIndex = static_cast<size_t>(Category::kAttention);
constexpr auto kEmbeddingIndex = static_cast<size_t>(Category::kEmbeddingForward);

StepResidual Residual(const char* vendor, bool sequence, double error, double gemm, double attention) {
  StepResidual residual;
  residual.vendor = vendor;
  residual.is_sequence_model = sequence;
  residual.error = error;
  residual.share[kGemmIndex] = gemm;
  residual.share[kAttentionIndex] = attention;
  return residual;
}

// Two steps on the vendor hold products for 1.4 steps together: (0.8 x 0.1 + 0.6 x 0.3) / 1.4 = 0.1857. Attention for
// 0.6 of a step there, too little; with the other vendor's for 1.1: (0.2 x 0.1 + 0.4 x 0.3 + 0.5 x 0.5) / 1.1 = 0.3545.
// Embeddings are in no step of the kind: nothing is known of them.
TEST(TermErrorsTest, WeightedByTheShareOfTheTerm) {
  const std::vector<StepResidual> residuals = {
      Residual("amd", true, 0.1, 0.8, 0.2), Residual("amd", true, 0.3, 0.6, 0.4),
      Residual("nvidia", true, 0.5, 0.5, 0.5), Residual("amd", false, 0.9, 1.0, 0)};
  const TermErrors errors = TermErrorsFor(residuals, DataModel("onetrans_large"), "amd");
  EXPECT_NEAR(errors.of_category[kGemmIndex], 0.26 / 1.4, 1e-12);
  EXPECT_NEAR(errors.of_category[kAttentionIndex], 0.39 / 1.1, 1e-12);
  EXPECT_EQ(errors.of_category[kEmbeddingIndex], 0.25);
  EXPECT_NEAR(errors.of_step, 0.2, 1e-12);
  EXPECT_EQ(errors.basis, "2 published steps of sequence models on amd");
}

TEST(TermErrorsTest, WithoutPublishedStepsAQuarter) {
  const TermErrors errors = TermErrorsFor({}, DataModel("rm2"), "amd");
  for (const double error : errors.of_category) EXPECT_EQ(error, 0.25);
  EXPECT_EQ(errors.of_step, 0.25);
}

// The errors follow the validation as it is now: where a prediction that is fitted or compared moves, so do they.
TEST(TermErrorsTest, AgreeWithTheValidation) {
  const std::vector<ValidationEntry> entries = ValueOrFail(LoadValidation(TestDataDirs()));
  const std::vector<ValidationRow> rows =
      RunValidation(entries, TestCatalogue(), TestDataDirs(), SharedStepConstants());
  const std::vector<StepResidual> residuals = StepResiduals(rows);
  size_t predicted = 0;
  double sequence_on_amd = 0, error_sum = 0;
  for (const ValidationRow& row : rows) {
    if (!row.predicted || !row.entry.step) continue;
    ++predicted;
    if (row.vendor != "amd" || !IsSequenceModel(DataModel(row.entry.model))) continue;
    sequence_on_amd += 1;
    error_sum += std::abs(*row.predicted / *row.entry.step - 1);
  }
  EXPECT_EQ(residuals.size(), predicted);
  ASSERT_GE(sequence_on_amd, 3);
  const TermErrors errors =
      ValueOrFail(MeasureTermErrors(TestCatalogue(), TestDataDirs(), DataModel("onetrans_large"), "amd"));
  EXPECT_NEAR(errors.of_step, error_sum / sequence_on_amd, 1e-12);
  for (const double error : errors.of_category) {
    EXPECT_GT(error, 0);
    EXPECT_LT(error, 1);
  }
  for (const StepResidual& residual : residuals) {
    double shares = 0;
    for (const double share : residual.share) shares += share;
    EXPECT_GT(shares, 0);
    EXPECT_LE(shares, 1 + 1e-9) << "host, overhead and idle time are no kernel's";
  }
}

}  // namespace
}  // namespace portolan
