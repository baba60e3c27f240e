#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Unpooled features only: pooled sums leave the owner as one vector whatever the duplicates.
class IndexDedupRule : public Rule {
 public:
  const char* name() const override { return "index_dedup"; }
  const char* published() const override {
    return "DLRMv4 on 8 x MI350X: 941.6 to 805.7 ms a step (mlcommons/training, recommendation_v4 yambda_5b.gin)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    bool unpooled = false;
    for (const FeatureGroup& group : context.model.groups) unpooled = unpooled || group.pooling == Pooling::kNone;
    if (!unpooled) {
      *why_not = "every feature is pooled: the owner sends one sum a bag, not its rows";
      return {};
    }
    if (context.cluster.devices == 1) {
      *why_not = "one device exchanges nothing";
      return {};
    }
    if (context.recipe.dedup == IndexDedup::kBeforeExchange) {
      return {MakeSetting(context, name(), "none", "exchange every lookup's row, duplicates included",
                          MathsClass::kReassociates, [](Recipe& r) { r.dedup = IndexDedup::kNone; })};
    }
    if (context.recipe.launch == Launch::kGraph) {
      *why_not = "the step is captured in a graph, which fixes how many rows are exchanged";
      return {};
    }
    return {MakeSetting(context, name(), "before_exchange", "exchange each distinct row of a local batch once",
                        MathsClass::kReassociates, [](Recipe& r) { r.dedup = IndexDedup::kBeforeExchange; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeIndexDedupRule() { return std::make_unique<IndexDedupRule>(); }

}  // namespace portolan
