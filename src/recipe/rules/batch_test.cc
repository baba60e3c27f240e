#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(BatchRuleTest, FactorsOfTheGlobalBatch) {
  RuleTester test(MakeBatchRule());  // 8 x 1024
  EXPECT_EQ(test.Options(), (Options{"2048", "4096", "16384", "32768"}));
  const Change change = test.Get("16384", MathsClass::kChangesMaths, {"local_batch", "global_batch"});
  EXPECT_EQ(change.recipe.local_batch, 0) << "one of the two is written";
}

TEST(BatchRuleTest, NotBelowOneSampleADevice) {
  RuleTester test(MakeBatchRule());
  test.recipe().local_batch = 2;
  EXPECT_EQ(test.Options(), (Options{"8", "32", "64"}));  // 16 / 4 < 8 devices
}

}  // namespace
}  // namespace portolan
