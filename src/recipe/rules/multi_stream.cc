#include "recipe/recipe_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class MultiStreamRule : public Rule {
 public:
  const char* name() const override { return "multi_stream"; }
  std::vector<Change> Propose(const RuleContext& context, std::string*) const override {
    const bool multi = context.recipe.concurrency == Concurrency::kMultiStream;
    const Concurrency other = multi ? Concurrency::kSingleStream : Concurrency::kMultiStream;
    return {MakeSetting(context, name(), EnumName(kConcurrencyNames, other),
                        multi ? "all kernels on one stream"
                              : "embedding kernels on a stream of their own, index sort beside the dense layers",
                        MathsClass::kExact, [other](Recipe& r) { r.concurrency = other; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeMultiStreamRule() { return std::make_unique<MultiStreamRule>(); }

}  // namespace portolan
