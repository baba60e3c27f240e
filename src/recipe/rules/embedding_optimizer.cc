#include "model/optimizer_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class EmbeddingOptimizerRule : public Rule {
 public:
  const char* name() const override { return "embedding_optimizer"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    const EmbeddingOptimizer current = context.recipe.embedding_optimizer.value_or(context.model.embedding_optimizer);
    EmbeddingOptimizer row_wise = current;
    if (current == EmbeddingOptimizer::kAdagrad) row_wise = EmbeddingOptimizer::kRowwiseAdagrad;
    if (current == EmbeddingOptimizer::kAdam) row_wise = EmbeddingOptimizer::kRowwiseAdam;
    if (row_wise == current) {
      *why_not = "the optimizer keeps no more than one state a row already";
      return {};
    }
    return {MakeSetting(context, name(), EnumName(kEmbeddingOptimizerNames, row_wise),
                        "one optimizer state a row instead of one an element", MathsClass::kChangesMaths,
                        [row_wise](Recipe& r) { r.embedding_optimizer = row_wise; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeEmbeddingOptimizerRule() { return std::make_unique<EmbeddingOptimizerRule>(); }

}  // namespace portolan
