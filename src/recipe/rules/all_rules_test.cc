#include "recipe/rules/all_rules.h"

#include <filesystem>

#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(AllRulesTest, NamesAreDistinctAndSpeakingOnesOnly) {
  std::set<std::string> names;
  for (const auto& rule : AllRules()) {
    EXPECT_TRUE(names.insert(rule->name()).second) << rule->name();
    EXPECT_EQ(std::string(rule->name()).find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos);
  }
  EXPECT_EQ(StructureRuleNames(), (std::vector<std::string>{"pad_dimensions", "merge_shared_input", "jagged_packing"}));
}

// Whatever a rule proposes for a shipped model can be applied, keeps the tables' names, which recipes use, and the
// dense weights but for padding.
TEST(AllRulesTest, ProposalsApplyToEveryModel) {
  const Cluster cluster = RuleTestCluster("8xmi350x");
  for (const auto& entry : std::filesystem::directory_iterator("data/models")) {
    const Result<Model> model = LoadModel(entry.path().string());
    ASSERT_TRUE(model) << FormatError(model.error());
    const Recipe recipe = DefaultRecipe();
    for (const auto& rule : AllRules()) {
      std::string why_not;
      const std::vector<Change> changes = rule->Propose({*model, recipe, cluster}, &why_not);
      EXPECT_EQ(changes.empty(), !why_not.empty()) << rule->name() << " on " << model->id;
      for (const Change& change : changes) {
        EXPECT_EQ(change.recipe.structure.empty(), !rule->RevisesStructure()) << rule->name();
        const Result<Model> revised = ApplyStructure(*model, change.recipe);
        ASSERT_TRUE(revised) << FormatError(revised.error());
        ASSERT_EQ(revised->tables.size(), model->tables.size());
        for (size_t t = 0; t < model->tables.size(); ++t) EXPECT_EQ(revised->tables[t].name, model->tables[t].name);
        EXPECT_EQ(EmbeddingParameters(*revised), EmbeddingParameters(*model));
        EXPECT_GE(DenseParameters(*revised), DenseParameters(*model));
        EXPECT_LE(DenseParameters(*revised), 1.2 * DenseParameters(*model) + 1e5) << model->id << " " << change.what;
      }
    }
  }
}

TEST(AllRulesTest, StructureThatNoRuleMakesIsAnError) {
  Recipe recipe = DefaultRecipe();
  recipe.structure = {{"pad_dimensions", 8}, {"index_dedup", 1}};
  const Result<Model> model = ApplyStructure(PooledModel(), recipe);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message,
            "recipe 'default': structure[1].rule: no structure rule is named 'index_dedup'; known: pad_dimensions, "
            "merge_shared_input, jagged_packing");
}

}  // namespace
}  // namespace portolan
