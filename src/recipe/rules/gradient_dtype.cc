#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class GradientDtypeRule : public Rule {
 public:
  const char* name() const override { return "gradient_dtype"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device reduces nothing";
      return {};
    }
    if (SizeOf(context.recipe.dense_gradient_comm) < Bytes(4)) {
      *why_not = "dense gradients are reduced in 16 bits already";
      return {};
    }
    return {MakeSetting(context, name(), "bf16", "all-reduce dense gradients in bf16", MathsClass::kChangesMaths,
                        [](Recipe& r) { r.dense_gradient_comm = DType::kBf16; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeGradientDtypeRule() { return std::make_unique<GradientDtypeRule>(); }

}  // namespace portolan
