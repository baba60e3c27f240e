#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

// 13 dense features, a hidden layer of 30, 32 joined columns, a hidden layer of 50, one output.
TEST(PadDimensionsRuleTest, InputsHiddenLayersAndJoins) {
  RuleTester test(MakePadDimensionsRule());
  std::get<MlpBlock>(test.model().blocks[0].body).widths = {30, 20};
  ASSERT_TRUE(test.model().InferShapes());
  EXPECT_EQ(test.Options(), (Options{"8", "16", "32", "64"}));
  const Change change = test.Get("8", MathsClass::kExact, {"structure", "rule"});
  EXPECT_EQ(change.what, "pad to multiples of 8: dense 13 to 16, bottom.0 30 to 32, joined 36 to 40, top.0 50 to 56");
  Model revised = test.model();
  ASSERT_TRUE(test.rule().Apply({"pad_dimensions", 8}, &revised));
  EXPECT_EQ(std::get<MlpBlock>(revised.blocks[0].body).widths, (std::vector<int64_t>{32, 20})) << "outputs stay";
  EXPECT_EQ(std::get<MlpBlock>(revised.blocks[2].body).widths, (std::vector<int64_t>{56, 1}));
  EXPECT_EQ(revised.tables[0].dim, 16);
  EXPECT_EQ(revised.features[0].lookups, 3);
}

TEST(PadDimensionsRuleTest, AnotherMultipleReplacesTheFirst) {
  RuleTester test(MakePadDimensionsRule());
  test.recipe().structure = {{"pad_dimensions", 8}, {"merge_shared_input", 1}};
  EXPECT_EQ(test.Options(), (Options{"16", "32", "64", "none"}));
  const Change wider = test.Get("64", MathsClass::kExact, {"rule"});
  ASSERT_EQ(wider.recipe.structure.size(), 2u);
  EXPECT_EQ(wider.recipe.structure[0].multiple, 64);
  const Change none = test.Get("none", MathsClass::kExact, {"rule"});
  ASSERT_EQ(none.recipe.structure.size(), 1u);
  EXPECT_EQ(none.recipe.structure[0].rule, "merge_shared_input");
}

TEST(PadDimensionsRuleTest, WidthsThatFitAreLeftAlone) {
  RuleTester test(MakePadDimensionsRule());
  test.model() = RuleTestModel(
      "model: even\ndense_features: 64\nblocks:\n  - {name: a, type: mlp, input: dense, widths: [128, 3]}\n");
  EXPECT_EQ(test.WhyNot(), "every width that may be padded is a multiple of 64 already");
}

// Zeros would change a norm's mean and variance, and a sigmoid makes a half of them.
TEST(PadDimensionsRuleTest, NothingThatWouldChangeValues) {
  RuleTester test(MakePadDimensionsRule());
  test.model() = RuleTestModel(
      "model: norms\ndense_features: 13\nblocks:\n  - {name: joined, type: concat, inputs: [dense, dense]}\n"
      "  - {name: norm, type: norm, input: joined}\n"
      "  - {name: normed, type: mlp, input: norm, widths: [30, 5], layer_norm: true}\n"
      "  - {name: gates, type: mlp, input: normed, widths: [30, 5], activation: sigmoid}\n");
  EXPECT_EQ(test.WhyNot(), "every width that may be padded is a multiple of 64 already");
}

// Through a cross layer and a second join to an MLP: zeros stay zeros.
TEST(PadDimensionsRuleTest, CrossLayersCarryZeros) {
  RuleTester test(MakePadDimensionsRule());
  test.model() = RuleTestModel(
      "model: dcn\ndense_features: 13\nblocks:\n  - {name: a, type: concat, inputs: [dense]}\n"
      "  - {name: cross, type: low_rank_cross, input: a, layers: 2, rank: 8}\n"
      "  - {name: top, type: mlp, input: cross, widths: [1]}\n");
  Model revised = test.model();
  ASSERT_TRUE(test.rule().Apply({"pad_dimensions", 8}, &revised));
  EXPECT_EQ(revised.blocks[1].shape.width, 16);
}

// A model that pads to 12 itself and a rule that pads to 8: a multiple of both.
TEST(PadDimensionsRuleTest, KeepsThePaddingOfTheModel) {
  RuleTester test(MakePadDimensionsRule());
  std::get<ConcatBlock>(test.model().blocks[1].body).pad_multiple = 12;
  ASSERT_TRUE(test.model().InferShapes());
  EXPECT_EQ(test.model().blocks[1].shape.width, 36);
  ASSERT_TRUE(test.rule().Apply({"pad_dimensions", 8}, &test.model()));
  EXPECT_EQ(test.model().blocks[1].shape.width, 48);
}

}  // namespace
}  // namespace portolan
