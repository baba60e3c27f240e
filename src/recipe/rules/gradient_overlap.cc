#include "recipe/recipe_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class GradientOverlapRule : public Rule {
 public:
  const char* name() const override { return "gradient_overlap"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device reduces nothing";
      return {};
    }
    const bool overlapped = context.recipe.gradient_overlap == GradientOverlap::kBackward;
    const GradientOverlap other = overlapped ? GradientOverlap::kNone : GradientOverlap::kBackward;
    return {MakeSetting(context, name(), EnumName(kGradientOverlapNames, other),
                        overlapped ? "one grouped all-reduce after the backward pass"
                                   : "all-reduce dense gradients in buckets during the backward pass",
                        MathsClass::kExact, [other](Recipe& r) { r.gradient_overlap = other; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeGradientOverlapRule() { return std::make_unique<GradientOverlapRule>(); }

}  // namespace portolan
