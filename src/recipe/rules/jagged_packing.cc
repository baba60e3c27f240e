#include <fmt/format.h>

#include <algorithm>

#include "model/shapes.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Histories without their padding: tokens, lookups and every later layer shrink to the real ones.
class JaggedPackingRule : public Rule {
 public:
  const char* name() const override { return "jagged_packing"; }
  bool RevisesStructure() const override { return true; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    std::string what;
    bool attended = false;
    for (const FeatureGroup& group : context.model.groups) {
      if (group.filled >= 1) continue;
      what += fmt::format("{}{}: {:g} of {:g} tokens are real", what.empty() ? "" : ", ", group.name,
                          group.filled * group.tokens, group.tokens);
      attended = attended || group.padding == FeatureGroup::Padding::kAttended;
    }
    for (const StructureChange& change : context.recipe.structure) {
      if (change.rule != name()) continue;
      *why_not = "histories are packed already";
      return {};
    }
    if (what.empty()) {
      *why_not = "no history is padded";
      return {};
    }
    const StructureChange change{name(), 1};
    return {MakeSetting(context, name(), "packed", "drop the padding of histories; " + what,
                        attended ? MathsClass::kChangesMaths : MathsClass::kExact,
                        [&change](Recipe& r) { r.structure.push_back(change); })};
  }
  Status Apply(const StructureChange&, Model* model) const override {
    for (Feature& feature : model->features) {
      const double filled = model->groups[static_cast<size_t>(feature.group)].filled;
      if (filled >= 1) continue;
      feature.lookups *= filled;
      feature.hottest_row_share = std::max(0.0, (feature.hottest_row_share - (1 - filled)) / filled);
    }
    for (DenseInput& input : model->dense_inputs) {
      // A numeric sequence as long as a padded history is that history's.
      for (const FeatureGroup& group : model->groups) {
        if (group.filled < 1 && input.shape.tokens == group.tokens) {
          input.shape.tokens *= group.filled;
          break;
        }
      }
    }
    for (FeatureGroup& group : model->groups) {
      if (group.filled >= 1) continue;
      group.tokens *= group.filled;
      group.filled = 1;
    }
    // In order: each block's own token counts follow its input's.
    for (size_t i = 0; i < model->blocks.size(); ++i) {
      Block& block = model->blocks[i];
      const Block::Input& input = block.inputs[0];
      if (input.kind == Block::Input::Kind::kBlock) {
        const double tokens = model->InputShape(input).tokens;
        if (auto* transformer = std::get_if<TransformerBlock>(&block.body)) {
          // A pyramid's layers look at the last so many tokens: real ones stay among them, padding goes.
          for (auto* counts : {&transformer->query_tokens, &transformer->key_tokens}) {
            for (double& count : *counts) count = std::min(count, tokens);
          }
        } else if (auto* select = std::get_if<SelectBlock>(&block.body)) {
          select->tokens = std::min(select->tokens, tokens);
        }
      }
      // Later blocks still have their old token counts: only this one's shape is inferred.
      std::vector<TensorShape> inputs;
      for (const Block::Input& one : block.inputs) inputs.push_back(model->InputShape(one));
      PORTOLAN_ASSIGN_OR_RETURN(block.shape, InferShape(block.body, inputs));
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeJaggedPackingRule() { return std::make_unique<JaggedPackingRule>(); }

}  // namespace portolan
