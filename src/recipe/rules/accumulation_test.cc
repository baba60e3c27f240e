#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(AccumulationRuleTest, MicroBatches) {
  RuleTester test(MakeAccumulationRule());
  EXPECT_EQ(test.Options(), (Options{"2", "4", "8"}));
  const Change change = test.Get("4", MathsClass::kChangesMaths, {"accumulation_steps"});
  EXPECT_EQ(change.recipe.GlobalBatch(8), 8192) << "the batch is divided, not multiplied";
}

// 8 devices, 16 samples: two each, so that no more than two micro-batches are possible.
TEST(AccumulationRuleTest, NoMicroBatchWithoutASample) {
  RuleTester test(MakeAccumulationRule());
  test.recipe().local_batch = 0;
  test.recipe().global_batch = 16;
  EXPECT_EQ(test.Options(), Options{"2"});
  test.recipe().global_batch = 8;
  EXPECT_EQ(test.WhyNot(), "a device has one sample a step");
}

}  // namespace
}  // namespace portolan
