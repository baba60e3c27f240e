#include <algorithm>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class GraphCaptureRule : public Rule {
 public:
  const char* name() const override { return "graph_capture"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.recipe.launch == Launch::kGraph) {
      *why_not = "the step is captured already";
      return {};
    }
    const bool jagged = std::any_of(context.model.groups.begin(), context.model.groups.end(),
                                    [](const FeatureGroup& group) { return group.pooling == Pooling::kNone; });
    if (jagged || context.recipe.dedup == IndexDedup::kBeforeExchange) {
      *why_not = "tensor sizes change from batch to batch (sequences, distinct rows): a graph fixes them";
      return {};
    }
    return {MakeSetting(context, name(), "graph", "capture the step in a graph: no host launch between kernels",
                        MathsClass::kExact, [](Recipe& r) { r.launch = Launch::kGraph; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeGraphCaptureRule() { return std::make_unique<GraphCaptureRule>(); }

}  // namespace portolan
