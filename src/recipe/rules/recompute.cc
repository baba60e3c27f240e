#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

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
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeRecomputeRule() { return std::make_unique<RecomputeRule>(); }

}  // namespace portolan
