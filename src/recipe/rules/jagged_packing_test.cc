#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

std::string Padded(const std::string& padding) {
  std::string text = kSequenceModel;
  const std::string group = "tokens: 100}";
  return text.replace(text.find(group), group.size(), "tokens: 100, filled: 0.25, padding: " + padding + "}");
}

TEST(JaggedPackingRuleTest, TokensAndLookupsShrinkToTheRealOnes) {
  RuleTester test(MakeJaggedPackingRule());
  test.model() = RuleTestModel(Padded("masked"));
  const Change change = test.Get("packed", MathsClass::kExact, {"structure", "rule"});
  EXPECT_EQ(change.what, "drop the padding of histories; history: 25 of 100 tokens are real");
  Model revised = test.model();
  ASSERT_TRUE(test.rule().Apply(change.recipe.structure[0], &revised));
  EXPECT_EQ(revised.groups[0].tokens, 25);
  EXPECT_EQ(revised.groups[0].filled, 1);
  EXPECT_EQ(revised.features[0].lookups, 25);
  EXPECT_EQ(revised.blocks[0].shape.tokens, 25);
  EXPECT_EQ(revised.blocks[1].shape.tokens, 1) << "a selection that still fits stays";
  EXPECT_EQ(DenseParameters(revised), DenseParameters(test.model()));
  EXPECT_EQ(revised.tables[0].rows, test.model().tables[0].rows);
}

// Where the model computes with the padding, dropping it changes what it computes.
TEST(JaggedPackingRuleTest, AttendedPaddingChangesTheMaths) {
  RuleTester test(MakeJaggedPackingRule());
  test.model() = RuleTestModel(Padded("attended"));
  test.Get("packed", MathsClass::kChangesMaths, {"structure", "rule"});
}

// 80 of 100 lookups hit one row and 75 of them are padding: of the 25 real ones 5 do, a fifth.
TEST(JaggedPackingRuleTest, PaddingLeavesTheHottestRow) {
  RuleTester test(MakeJaggedPackingRule());
  test.model() = RuleTestModel(Padded("masked"));
  test.model().features[0].hottest_row_share = 0.8;
  ASSERT_TRUE(test.rule().Apply({"jagged_packing", 1}, &test.model()));
  EXPECT_NEAR(test.model().features[0].hottest_row_share, 0.2, 1e-12);
}

// A pyramid behind a tokenizer: 100 history tokens, 25 of them real, and 4 more. Layers look at the last 104 and 20 of
// 104 tokens, and at 29 and 20 of 29 afterwards.
TEST(JaggedPackingRuleTest, PyramidsKeepTheRealTokens) {
  RuleTester test(MakeJaggedPackingRule());
  test.model() = RuleTestModel(
      "model: pyramid\ndense_inputs: [{name: numbers, tokens: 4, width: 32}]\n"
      "tables:\n  - {name: item, rows: 1000, dim: 32}\n"
      "features:\n  - {name: history, table: item, group: history, lookups: 100}\n"
      "groups:\n  - {name: history, pooling: none, tokens: 100, filled: 0.25, padding: attended}\n"
      "blocks:\n  - {name: tokenizer, type: mlp, input: history, widths: [32]}\n"
      "  - {name: tokens, type: concat, axis: tokens, inputs: [tokenizer, numbers]}\n"
      "  - {name: layers, type: transformer, input: tokens, layers: 2, heads: 2, head_dim: 16, feed_forward_width: 64, "
      "query_tokens: [104, 20], own_weight_tokens: 4}\n"
      "  - {name: last, type: select, input: layers, tokens: 4}\n");
  const Status applied = test.rule().Apply({"jagged_packing", 1}, &test.model());
  ASSERT_TRUE(applied) << FormatError(applied.error());
  const auto& layers = std::get<TransformerBlock>(test.model().blocks[2].body);
  EXPECT_EQ(layers.query_tokens, (std::vector<double>{29, 20}));
  EXPECT_EQ(test.model().blocks[1].shape.tokens, 29);
  EXPECT_EQ(test.model().blocks[3].shape.tokens, 4);
}

TEST(JaggedPackingRuleTest, DoesNotApply) {
  RuleTester test(MakeJaggedPackingRule());
  EXPECT_EQ(test.WhyNot(), "no history is padded");
  test.model() = RuleTestModel(kSequenceModel);
  EXPECT_EQ(test.WhyNot(), "no history is padded");
  test.model() = RuleTestModel(Padded("masked"));
  test.recipe().structure = {{"jagged_packing", 1}};
  EXPECT_EQ(test.WhyNot(), "histories are packed already");
}

}  // namespace
}  // namespace portolan
