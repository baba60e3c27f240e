#include "plan/estimate_memo.h"

#include <gtest/gtest.h>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

TEST(EstimateMemo, AnswersAsTheEstimateForEachClusterAndRecipe) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  const Cluster old_machine = TestCluster("8xb200"), new_machine = TestCluster("8xmi350x");
  Recipe recipe = DataRecipe("hugectr_mlperf");
  EstimateMemo memo;
  for (const Balance balance : {Balance::kSearched, Balance::kGreedy, Balance::kSearched}) {
    recipe.balance = balance;
    for (const Cluster* cluster : {&old_machine, &new_machine}) {
      const StepEstimate expected = ValueOrFail(EstimateStep(model, recipe, *cluster));
      const StepEstimate got = ValueOrFail(memo.Price(model, recipe, *cluster));
      EXPECT_EQ(got.step.value, expected.step.value);
      EXPECT_EQ(got.memory.total.value, expected.memory.total.value);
    }
  }
  Recipe other = recipe;
  other.local_batch = 1024;
  other.global_batch = 0;
  EXPECT_EQ(ValueOrFail(memo.Price(model, other, new_machine)).step.value,
            ValueOrFail(EstimateStep(model, other, new_machine)).step.value);
}

}  // namespace
}  // namespace portolan
