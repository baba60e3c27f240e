#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(GroupedProductsRuleTest, LayersWithWeightsOfTheirOwn) {
  RuleTester test(MakeGroupedProductsRule());
  EXPECT_EQ(test.WhyNot(), "no layer has weights of its own a field");
  std::get<MlpBlock>(test.model().blocks[0].body).groups = 2;
  EXPECT_EQ(test.WhyNot(), "such layers are one batched product already");
  test.recipe().grouped_products = GroupedProducts::kLoop;
  test.Get("batched", MathsClass::kExact, {"grouped_products"});
}

}  // namespace
}  // namespace portolan
