#include <algorithm>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

bool HasBlock(const Model& model, bool (*is)(const Block&)) {
  return std::any_of(model.blocks.begin(), model.blocks.end(), is);
}

class GroupedProductsRule : public Rule {
 public:
  const char* name() const override { return "grouped_products"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    const auto grouped = [](const Block& block) {
      const auto* mlp = std::get_if<MlpBlock>(&block.body);
      const auto* transformer = std::get_if<TransformerBlock>(&block.body);
      return (mlp != nullptr && mlp->groups > 1) || (transformer != nullptr && transformer->own_weight_tokens > 0);
    };
    if (!HasBlock(context.model, grouped)) {
      *why_not = "no layer has weights of its own a field";
      return {};
    }
    if (context.recipe.grouped_products == GroupedProducts::kBatched) {
      *why_not = "such layers are one batched product already";
      return {};
    }
    return {MakeSetting(context, name(), "batched", "one batched product for layers with weights of their own a field",
                        MathsClass::kExact, [](Recipe& r) { r.grouped_products = GroupedProducts::kBatched; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeGroupedProductsRule() { return std::make_unique<GroupedProductsRule>(); }

}  // namespace portolan
