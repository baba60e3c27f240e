#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(RecomputeRuleTest, EveryOtherDegree) {
  RuleTester test(MakeRecomputeRule());
  EXPECT_EQ(test.Options(), (Options{"cheap", "all", "also top", "also bottom"}));
  test.Get("all", MathsClass::kExact, {"recompute"});
  test.recipe().recompute = Recompute::kAll;
  EXPECT_EQ(test.Options(), (Options{"none", "cheap", "not top", "not bottom"}));
}

TEST(RecomputeRuleTest, ListedBlocksGiveWay) {
  RuleTester test(MakeRecomputeRule());
  test.recipe().recompute = Recompute::kListed;
  test.recipe().recompute_blocks = {"top"};
  EXPECT_EQ(test.Options(), (Options{"none", "cheap", "all", "also bottom"})) << "without the last block: none";
  for (const Change& change : test.Propose()) {
    EXPECT_EQ(change.recipe.recompute_blocks.empty(), change.recipe.recompute != Recompute::kListed);
  }
}

// Block by block, the largest outputs first: 50 and 1 columns of the top block, 30 and 16 of the bottom one.
TEST(RecomputeRuleTest, OneBlockMoreOrLess) {
  RuleTester test(MakeRecomputeRule());
  Change change = test.Get("also bottom", MathsClass::kExact, {"recompute", "\"bottom\""});
  EXPECT_EQ(change.recipe.recompute, Recompute::kListed);
  EXPECT_EQ(change.recipe.recompute_blocks, (std::vector<std::string>{"bottom"}));
  test.recipe().recompute = Recompute::kAll;
  change = test.Get("not bottom", MathsClass::kExact, {"recompute", "\"top\""});
  EXPECT_EQ(change.recipe.recompute_blocks, (std::vector<std::string>{"top"}));
}

TEST(RecomputeRuleTest, AtMostTheLargestBlocks) {
  RuleTester test(MakeRecomputeRule());
  std::string text =
      "model: deep\ndense_features: 13\nblocks:\n  - {name: b0, type: mlp, input: dense, widths: [10]}\n";
  for (int i = 1; i < 10; ++i) {
    text += "  - {name: b" + std::to_string(i) + ", type: mlp, input: b" + std::to_string(i - 1) + ", widths: [" +
            std::to_string(10 + i) + "]}\n";
  }
  test.model() = RuleTestModel(text);
  EXPECT_EQ(test.Options(),
            (Options{"cheap", "all", "also b9", "also b8", "also b7", "also b6", "also b5", "also b4"}));
}

}  // namespace
}  // namespace portolan
