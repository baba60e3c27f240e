#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// MLPs that read one tensor: their first layers become one product whose output they read as slices. The gradient of
// the tensor is then one product's sum instead of the sum of several.
class MergeSharedInputRule : public Rule {
 public:
  const char* name() const override { return "merge_shared_input"; }
  bool RevisesStructure() const override { return true; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    const auto is_this = [this](const StructureChange& change) { return change.rule == name(); };
    if (std::any_of(context.recipe.structure.begin(), context.recipe.structure.end(), is_this)) {
      return {MakeSetting(context, name(), "separate", "one product for each layer", MathsClass::kReassociates,
                          [&is_this](Recipe& r) {
                            const auto gone = std::remove_if(r.structure.begin(), r.structure.end(), is_this);
                            r.structure.erase(gone, r.structure.end());
                          })};
    }
    std::string what;
    for (const auto& members : SharedInputs(context.model)) {
      what += fmt::format("{}first layers of", what.empty() ? "" : "; ");
      for (const size_t i : members) what += " " + context.model.blocks[i].name;
    }
    if (what.empty()) {
      *why_not = "no two layers read one tensor";
      return {};
    }
    const StructureChange change{name(), 1};
    return {MakeSetting(context, name(), "merged", "one product for the " + what, MathsClass::kReassociates,
                        [&change](Recipe& r) { r.structure.push_back(change); })};
  }
  Status Apply(const StructureChange&, Model* model) const override {
    // Blocks are rebuilt in order; `moved` maps old indices to new ones.
    const std::vector<std::vector<size_t>> groups = SharedInputs(*model);
    std::map<size_t, std::pair<size_t, int64_t>> member;  // block -> (group, offset)
    std::vector<int64_t> total(groups.size(), 0);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const size_t i : groups[g]) {
        member[i] = {g, total[g]};
        total[g] += std::get<MlpBlock>(model->blocks[i].body).widths[0];
      }
    }
    std::vector<Block> blocks;
    std::vector<int> moved(model->blocks.size(), -1), merged(groups.size(), -1);
    for (size_t i = 0; i < model->blocks.size(); ++i) {
      Block block = model->blocks[i];
      for (Block::Input& input : block.inputs) {
        if (input.kind == Block::Input::Kind::kBlock) input.index = moved[static_cast<size_t>(input.index)];
      }
      const auto found = member.find(i);
      if (found != member.end()) {
        const auto [g, offset] = found->second;
        MlpBlock mlp = std::get<MlpBlock>(block.body);
        if (merged[g] < 0) {
          Block first = block;
          first.name += ".shared";
          MlpBlock shared = mlp;
          shared.widths = {total[g]};
          shared.last_activation = mlp.widths.size() == 1 ? mlp.last_activation : mlp.activation;
          first.body = shared;
          merged[g] = static_cast<int>(blocks.size());
          blocks.push_back(std::move(first));
        }
        Block slice;
        slice.name = mlp.widths.size() == 1 ? block.name : block.name + ".slice";
        slice.inputs = {{Block::Input::Kind::kBlock, merged[g]}};
        slice.body = SliceBlock{offset, mlp.widths[0]};
        blocks.push_back(slice);
        if (mlp.widths.size() == 1) {
          moved[i] = static_cast<int>(blocks.size()) - 1;
          continue;
        }
        block.inputs = {{Block::Input::Kind::kBlock, static_cast<int>(blocks.size()) - 1}};
        mlp.widths.erase(mlp.widths.begin());
        block.body = mlp;
      }
      moved[i] = static_cast<int>(blocks.size());
      blocks.push_back(std::move(block));
    }
    model->blocks = std::move(blocks);
    return model->InferShapes();
  }

 private:
  // Sets of plain MLPs with one common input and equal treatment of the first layer's output.
  static std::vector<std::vector<size_t>> SharedInputs(const Model& model) {
    std::map<std::tuple<int, int, int, bool>, std::vector<size_t>> by_input;
    for (size_t i = 0; i < model.blocks.size(); ++i) {
      const auto* mlp = std::get_if<MlpBlock>(&model.blocks[i].body);
      if (mlp == nullptr || mlp->groups > 1 || model.blocks[i].inputs.size() != 1) continue;
      const Block::Input& input = model.blocks[i].inputs[0];
      const Activation first = mlp->widths.size() == 1 ? mlp->last_activation : mlp->activation;
      by_input[{static_cast<int>(input.kind), input.index, static_cast<int>(first), mlp->layer_norm}].push_back(i);
    }
    std::vector<std::vector<size_t>> groups;
    for (auto& [key, members] : by_input) {
      // A norm reduces over one layer's outputs: it cannot be shared.
      if (members.size() > 1 && !std::get<3>(key)) groups.push_back(members);
    }
    return groups;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeMergeSharedInputRule() { return std::make_unique<MergeSharedInputRule>(); }

}  // namespace portolan
