#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(PipelineRuleTest, EveryOtherDepth) {
  RuleTester test(MakePipelineRule());
  EXPECT_EQ(test.Options(), (Options{"index_exchange", "embedding"}));
  test.Get("embedding", MathsClass::kExact, {"pipeline"});
  test.recipe().pipeline = Pipeline::kEmbedding;
  EXPECT_EQ(test.Options(), (Options{"index_exchange", "none"}));
}

}  // namespace
}  // namespace portolan
