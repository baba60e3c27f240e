#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(OptimizerStateRuleTest, TablesAndLayersApart) {
  RuleTester test(MakeOptimizerStateRule());
  test.recipe().embedding_optimizer = EmbeddingOptimizer::kAdam;
  test.recipe().dense_optimizer = DenseOptimizer::kAdam;
  EXPECT_EQ(test.Options(), (Options{"tables bf16", "layers bf16"}));
  test.Get("tables bf16", MathsClass::kChangesMaths, {"optimizer_state"});
  test.Get("layers bf16", MathsClass::kChangesMaths, {"dense_optimizer_state"});
  test.recipe().embedding_state = DType::kBf16;
  EXPECT_EQ(test.Options(), (Options{"tables fp32", "layers bf16"}));
}

TEST(OptimizerStateRuleTest, NothingToStore) {
  RuleTester test(MakeOptimizerStateRule());
  test.recipe().embedding_optimizer = EmbeddingOptimizer::kSgd;
  test.recipe().dense_optimizer = DenseOptimizer::kSgd;
  EXPECT_EQ(test.WhyNot(), "the optimizers keep no state");
  test.recipe().dense_optimizer = DenseOptimizer::kMomentum;
  EXPECT_EQ(test.Options(), Options{"layers bf16"});
}

}  // namespace
}  // namespace portolan
