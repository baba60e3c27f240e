#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hw/catalogue.h"
#include "recipe/rules/rule.h"

namespace portolan {

// What the tests of this folder share; they run in the source folder.
inline const Catalogue& RuleTestCatalogue() {
  static const Catalogue kCatalogue = [] {
    Result<Catalogue> catalogue = Catalogue::Load({"data"});
    if (!catalogue) ADD_FAILURE() << FormatError(catalogue.error());
    return catalogue ? *catalogue : Catalogue();
  }();
  return kCatalogue;
}

inline Cluster RuleTestCluster(const std::string& text) {
  const Result<Cluster> cluster = RuleTestCatalogue().ParseCluster(text);
  if (!cluster) ADD_FAILURE() << FormatError(cluster.error());
  return cluster ? *cluster : Cluster();
}

inline Model RuleTestModel(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "model.yaml");
  const Result<Model> model = value ? ReadModel(*value) : Result<Model>(tl::make_unexpected(value.error()));
  if (!model) ADD_FAILURE() << FormatError(model.error());
  return model ? *model : Model();
}

// One pooled table, a bottom and a top MLP.
inline Model PooledModel() {
  return RuleTestModel(
      "model: pooled\ndense_features: 13\ntables:\n  - {name: t, rows: 1000, dim: 16, lookups: 3}\nblocks:\n"
      "  - {name: bottom, type: mlp, input: dense, widths: [30, 16]}\n"
      "  - {name: joined, type: concat, inputs: [bottom, embeddings]}\n"
      "  - {name: top, type: mlp, input: joined, widths: [50, 1]}\n");
}

// Lines of the recipe's YAML that differ: what a change sets. Both recipes as they are written to files.
inline std::set<std::string> ChangedKeys(const Recipe& before, const Recipe& after) {
  const auto lines = [](const Recipe& recipe) {
    std::vector<std::string> all;
    std::string line;
    for (const char c : WriteRecipe(recipe)) {
      if (c != '\n') {
        line += c;
        continue;
      }
      all.push_back(line);
      line.clear();
    }
    return all;
  };
  const std::vector<std::string> a = lines(before), b = lines(after);
  std::set<std::string> keys;
  const auto add_missing = [&keys](const std::vector<std::string>& from, const std::vector<std::string>& in) {
    for (const std::string& line : from) {
      if (std::find(in.begin(), in.end(), line) != in.end()) continue;
      const size_t first = line.find_first_not_of(" -{");
      keys.insert(line.substr(first, line.find(':') - first));
    }
  };
  add_missing(a, b);
  add_missing(b, a);
  return keys;
}

using Options = std::vector<std::string>;

// One rule on one model, recipe and cluster.
class RuleTester {
 public:
  explicit RuleTester(std::unique_ptr<Rule> rule) : rule_(std::move(rule)), model_(PooledModel()) {
    recipe_.id = "r";
    recipe_.local_batch = 1024;
  }

  Model& model() { return model_; }
  Recipe& recipe() { return recipe_; }
  void On(const std::string& cluster) { cluster_ = RuleTestCluster(cluster); }
  const Rule& rule() const { return *rule_; }

  // All changes; checks what holds for every rule: name, a sentence, no second copy of the current recipe, no option
  // twice, and that the recipe can be written.
  std::vector<Change> Propose() {
    why_not_.clear();
    std::vector<Change> changes = rule_->Propose({model_, recipe_, cluster_}, &why_not_);
    std::set<std::string> options;
    for (const Change& change : changes) {
      EXPECT_EQ(change.rule, rule_->name());
      EXPECT_FALSE(change.what.empty());
      EXPECT_TRUE(options.insert(change.option).second) << change.option << " twice";
      EXPECT_FALSE(ChangedKeys(recipe_, change.recipe).empty()) << change.option << " changes nothing";
    }
    EXPECT_EQ(changes.empty(), !why_not_.empty()) << why_not_;
    return changes;
  }
  std::vector<std::string> Options() {
    std::vector<std::string> options;
    for (const Change& change : Propose()) options.push_back(change.option);
    return options;
  }
  // The reason why nothing is proposed.
  std::string WhyNot() {
    const std::vector<Change> changes = Propose();
    EXPECT_TRUE(changes.empty()) << changes.front().what;
    return why_not_;
  }
  // The change to `option`; it must be of class `maths` and touch `keys` of the recipe's file and nothing else.
  Change Get(const std::string& option, MathsClass maths, const std::set<std::string>& keys) {
    for (Change& change : Propose()) {
      if (change.option != option) continue;
      EXPECT_EQ(change.maths, maths) << option;
      EXPECT_EQ(ChangedKeys(recipe_, change.recipe), keys) << option;
      return change;
    }
    ADD_FAILURE() << "no option " << option << " (" << why_not_ << ")";
    return {};
  }

 private:
  std::unique_ptr<Rule> rule_;
  Model model_;
  Recipe recipe_;
  Cluster cluster_ = RuleTestCluster("8xh100");
  std::string why_not_;
};

inline const char kSequenceModel[] =
    "model: sequence\ntables:\n  - {name: item, rows: 1000, dim: 32}\n"
    "features:\n  - {name: history, table: item, group: history, lookups: 100}\n"
    "groups:\n  - {name: history, pooling: none, tokens: 100}\n"
    "blocks:\n  - {name: hstu, type: hstu, input: history, layers: 2, heads: 2, qk_dim: 16, v_dim: 16}\n"
    "  - {name: last, type: select, input: hstu, tokens: 1}\n"
    "  - {name: head, type: mlp, input: last, widths: [16, 1]}\n";

}  // namespace portolan
