#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(DenseParallelismRuleTest, EveryOtherForm) {
  RuleTester test(MakeDenseParallelismRule());
  EXPECT_EQ(test.Options(), (Options{"sharded_optimizer", "fully_sharded"}));
  test.Get("fully_sharded", MathsClass::kExact, {"dense_parallelism"});
}

TEST(DenseParallelismRuleTest, OneDevice) {
  RuleTester test(MakeDenseParallelismRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device holds all dense weights");
}

}  // namespace
}  // namespace portolan
