#include <algorithm>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Optimizer state stored in bf16: half the bytes held, read and written; sums of many small terms are rounded away.
class OptimizerStateRule : public Rule {
 public:
  const char* name() const override { return "optimizer_state"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    const Recipe& recipe = context.recipe;
    const EmbeddingOptimizer sparse = recipe.embedding_optimizer.value_or(context.model.embedding_optimizer);
    const DenseOptimizer dense = recipe.dense_optimizer.value_or(context.model.dense_optimizer);
    const bool of_tables = !context.model.tables.empty() && EmbeddingStateBytesPerRow(sparse, 1) > Bytes(0);
    const bool of_layers = DenseOptimizerStateBytes(dense, 1) > Bytes(0);
    std::vector<Change> changes;
    if (of_tables) {
      const DType next = SizeOf(recipe.embedding_state) > Bytes(2) ? DType::kBf16 : DType::kFp32;
      changes.push_back(MakeSetting(context, name(), std::string("tables ") + DTypeName(next),
                                    std::string("optimizer state of the tables in ") + DTypeName(next),
                                    MathsClass::kChangesMaths, [next](Recipe& r) { r.embedding_state = next; }));
    }
    if (of_layers) {
      const DType next = SizeOf(recipe.dense_state) > Bytes(2) ? DType::kBf16 : DType::kFp32;
      changes.push_back(MakeSetting(context, name(), std::string("layers ") + DTypeName(next),
                                    std::string("optimizer state of the dense layers in ") + DTypeName(next),
                                    MathsClass::kChangesMaths, [next](Recipe& r) { r.dense_state = next; }));
    }
    if (changes.empty()) *why_not = "the optimizers keep no state";
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeOptimizerStateRule() { return std::make_unique<OptimizerStateRule>(); }

}  // namespace portolan
