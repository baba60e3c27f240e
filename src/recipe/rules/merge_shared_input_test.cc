#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

// Three MLPs read "dense": two with relu first, one with gelu. 13 -> 30 and 13 -> 20 become 13 -> 50.
constexpr char kShared[] =
    "model: shared\ndense_features: 13\ntables:\n  - {name: t, rows: 100, dim: 16, lookups: 1}\nblocks:\n"
    "  - {name: a, type: mlp, input: dense, widths: [30, 16]}\n"
    "  - {name: b, type: mlp, input: dense, widths: [20]}\n"
    "  - {name: c, type: mlp, input: dense, widths: [8, 8], activation: gelu}\n"
    "  - {name: joined, type: concat, inputs: [a, b, c, embeddings]}\n"
    "  - {name: top, type: mlp, input: joined, widths: [8, 1]}\n";

TEST(MergeSharedInputRuleTest, FirstLayersBecomeOneProduct) {
  RuleTester test(MakeMergeSharedInputRule());
  test.model() = RuleTestModel(kShared);
  const Change change = test.Get("merged", MathsClass::kReassociates, {"structure", "rule"});
  EXPECT_EQ(change.what, "one product for the first layers of a b");
  Model revised = test.model();
  ASSERT_TRUE(test.rule().Apply(change.recipe.structure[0], &revised));
  std::vector<std::string> names;
  for (const Block& block : revised.blocks) names.push_back(block.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a.shared", "a.slice", "a", "b", "c", "joined", "top"}));
  EXPECT_EQ(std::get<MlpBlock>(revised.blocks[0].body).widths, std::vector<int64_t>{50});
  EXPECT_EQ(std::get<SliceBlock>(revised.blocks[1].body).offset, 0);
  EXPECT_EQ(std::get<MlpBlock>(revised.blocks[2].body).widths, std::vector<int64_t>{16});
  EXPECT_EQ(std::get<SliceBlock>(revised.blocks[3].body).offset, 30);
  // The same weights, the same output shapes, the third MLP untouched.
  EXPECT_EQ(DenseParameters(revised), DenseParameters(test.model()));
  EXPECT_EQ(revised.blocks[5].shape.width, test.model().blocks[3].shape.width);
  EXPECT_EQ(std::get<MlpBlock>(revised.blocks[4].body).widths, (std::vector<int64_t>{8, 8}));
}

TEST(MergeSharedInputRuleTest, CanBeTakenBack) {
  RuleTester test(MakeMergeSharedInputRule());
  test.model() = RuleTestModel(kShared);
  test.recipe().structure = {{"pad_dimensions", 8}, {"merge_shared_input", 1}};
  const Change change = test.Get("separate", MathsClass::kReassociates, {"rule"});
  ASSERT_EQ(change.recipe.structure.size(), 1u);
  EXPECT_EQ(change.recipe.structure[0].rule, "pad_dimensions");
}

TEST(MergeSharedInputRuleTest, DoesNotApply) {
  RuleTester test(MakeMergeSharedInputRule());
  EXPECT_EQ(test.WhyNot(), "no two layers read one tensor");
  // Norms reduce over one layer's outputs, and grouped layers have no common input columns.
  test.model() = RuleTestModel(kShared);
  for (int i = 0; i < 2; ++i) std::get<MlpBlock>(test.model().blocks[static_cast<size_t>(i)].body).layer_norm = true;
  EXPECT_EQ(test.WhyNot(), "no two layers read one tensor");
}

}  // namespace
}  // namespace portolan
