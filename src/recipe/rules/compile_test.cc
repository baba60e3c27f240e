#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(CompileRuleTest, OnlyEagerCodeIsCompiled) {
  RuleTester test(MakeCompileRule());
  test.recipe().fusion = Fusion::kEager;
  test.Get("compiled", MathsClass::kReassociates, {"fusion"});
  for (const Fusion fusion : {Fusion::kCompiled, Fusion::kFull}) {
    test.recipe().fusion = fusion;
    EXPECT_EQ(test.WhyNot(), "pointwise work is fused already");
  }
}

}  // namespace
}  // namespace portolan
