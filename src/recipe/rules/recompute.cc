#include <algorithm>
#include <vector>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Blocks that keep tensors of their own for the backward pass.
bool KeepsActivations(const Block& block) {
  return !std::holds_alternative<ConcatBlock>(block.body) && !std::holds_alternative<SelectBlock>(block.body) &&
         !std::holds_alternative<SliceBlock>(block.body) && !std::holds_alternative<ReshapeBlock>(block.body) &&
         !std::holds_alternative<AddBlock>(block.body);
}

// What a block keeps grows with the widths of its layers: a rank order, no price.
double Weight(const Block& block) {
  double layers = 1;
  if (const auto* mlp = std::get_if<MlpBlock>(&block.body)) {
    double widths = 0;
    for (const int64_t width : mlp->widths) widths += static_cast<double>(width);
    return block.shape.tokens * widths;
  }
  if (const auto* transformer = std::get_if<TransformerBlock>(&block.body)) {
    layers = static_cast<double>(transformer->layers);
  } else if (const auto* hstu = std::get_if<HstuBlock>(&block.body)) {
    layers = static_cast<double>(hstu->layers);
  } else if (const auto* cross = std::get_if<CrossBlock>(&block.body)) {
    layers = static_cast<double>(cross->layers);
  }
  return block.shape.elements() * layers;
}

class RecomputeRule : public Rule {
 public:
  const char* name() const override { return "recompute"; }
  const char* published() const override {
    return "Qwen3-30B on MI355X, recomputed layers 5 to 0 in 288 GB: +19 % tokens/s (AMD-AGI/Primus PR #1011)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string*) const override {
    struct Option {
      Recompute recompute;
      const char* option;
      const char* what;
    };
    std::vector<Change> changes;
    for (const Option& option :
         {Option{Recompute::kNone, "none", "keep every activation for the backward pass"},
          Option{Recompute::kCheap, "cheap", "recompute norms, gates and activations in the backward pass"},
          Option{Recompute::kAll, "all", "recompute every block in the backward pass"}}) {
      if (option.recompute == context.recipe.recompute) continue;
      changes.push_back(
          MakeSetting(context, name(), option.option, option.what, MathsClass::kExact, [&option](Recipe& r) {
            r.recompute = option.recompute;
            r.recompute_blocks.clear();
          }));
    }
    AddSingleBlocks(context, &changes);
    return changes;
  }

 private:
  // One block more, or one less, than now; of the largest ones.
  static constexpr size_t kBlocks = 6;

  void AddSingleBlocks(const RuleContext& context, std::vector<Change>* changes) const {
    std::vector<const Block*> blocks;
    for (const Block& block : context.model.blocks) {
      if (KeepsActivations(block)) blocks.push_back(&block);
    }
    if (blocks.size() < 2) return;  // "all" and "none" are what there is
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block* a, const Block* b) { return Weight(*a) > Weight(*b); });
    std::vector<std::string> now;
    if (context.recipe.recompute == Recompute::kListed) now = context.recipe.recompute_blocks;
    if (context.recipe.recompute == Recompute::kAll) {
      for (const Block* block : blocks) now.push_back(block->name);
    }
    for (size_t i = 0; i < std::min(kBlocks, blocks.size()); ++i) {
      const std::string& name_of_block = blocks[i]->name;
      std::vector<std::string> next = now;
      const auto found = std::find(next.begin(), next.end(), name_of_block);
      const bool more = found == next.end();
      if (more) {
        next.push_back(name_of_block);
      } else {
        next.erase(found);
      }
      if (next.empty()) continue;  // "none"
      changes->push_back(MakeSetting(context, name(), (more ? "also " : "not ") + name_of_block,
                                     more ? "recompute block '" + name_of_block + "' in the backward pass"
                                          : "keep the activations of block '" + name_of_block + "'",
                                     MathsClass::kExact, [&next](Recipe& r) {
                                       r.recompute = Recompute::kListed;
                                       r.recompute_blocks = next;
                                     }));
    }
  }
};

}  // namespace

std::unique_ptr<Rule> MakeRecomputeRule() { return std::make_unique<RecomputeRule>(); }

}  // namespace portolan
