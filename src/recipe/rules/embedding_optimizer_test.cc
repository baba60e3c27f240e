#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(EmbeddingOptimizerRuleTest, OneStateARow) {
  RuleTester test(MakeEmbeddingOptimizerRule());
  test.model().embedding_optimizer = EmbeddingOptimizer::kAdam;
  test.Get("rowwise_adam", MathsClass::kChangesMaths, {"optimizer"});
  test.recipe().embedding_optimizer = EmbeddingOptimizer::kAdagrad;  // the recipe's goes before the model's
  test.Get("rowwise_adagrad", MathsClass::kChangesMaths, {"optimizer"});
}

TEST(EmbeddingOptimizerRuleTest, OthersAreLeftAlone) {
  RuleTester test(MakeEmbeddingOptimizerRule());
  for (const EmbeddingOptimizer optimizer :
       {EmbeddingOptimizer::kSgd, EmbeddingOptimizer::kRowwiseAdagrad, EmbeddingOptimizer::kRowwiseAdam}) {
    test.model().embedding_optimizer = optimizer;
    EXPECT_EQ(test.WhyNot(), "the optimizer keeps no more than one state a row already");
  }
}

}  // namespace
}  // namespace portolan
