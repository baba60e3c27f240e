#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class CompileRule : public Rule {
 public:
  const char* name() const override { return "compile"; }
  const char* published() const override {
    return "custom interaction kernel in a TF2 DLRM on 8 x A100: 1.33 to 1.49x (HugeCTR sparse_operation_kit, "
           "DLRM_Benchmark)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.recipe.fusion != Fusion::kEager) {
      *why_not = "pointwise work is fused already";
      return {};
    }
    return {MakeSetting(context, name(), "compiled", "fuse pointwise chains and norms with a graph compiler",
                        MathsClass::kReassociates, [](Recipe& r) { r.fusion = Fusion::kCompiled; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeCompileRule() { return std::make_unique<CompileRule>(); }

}  // namespace portolan
