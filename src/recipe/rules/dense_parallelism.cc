#include "recipe/recipe_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class DenseParallelismRule : public Rule {
 public:
  const char* name() const override { return "dense_parallelism"; }
  const char* published() const override {
    return "hybrid sharding over full sharding of a DHEN dense part on 256 GPUs: 1.2x (arXiv 2203.11014)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device holds all dense weights";
      return {};
    }
    struct Option {
      DenseParallelism parallelism;
      const char* what;
    };
    std::vector<Change> changes;
    for (const Option& option :
         {Option{DenseParallelism::kReplicated, "dense weights and optimizer state on every device"},
          Option{DenseParallelism::kShardedOptimizer, "dense optimizer state divided over the devices"},
          Option{DenseParallelism::kFullySharded, "dense weights, gradients and state divided over the devices"}}) {
      if (option.parallelism == context.recipe.dense_parallelism) continue;
      changes.push_back(MakeSetting(context, name(), EnumName(kDenseParallelismNames, option.parallelism), option.what,
                                    MathsClass::kExact,
                                    [&option](Recipe& r) { r.dense_parallelism = option.parallelism; }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeDenseParallelismRule() { return std::make_unique<DenseParallelismRule>(); }

}  // namespace portolan
