#include "recipe/rules/all_rules.h"

#include <fmt/format.h>

#include "base/text.h"

namespace portolan {

const char* MathsClassName(MathsClass maths) {
  switch (maths) {
    case MathsClass::kExact:
      return "exact";
    case MathsClass::kReassociates:
      return "reassociates";
    case MathsClass::kChangesMaths:
      return "changes maths";
  }
  return "?";
}

Status Rule::Apply(const StructureChange& change, Model*) const {
  return MakeError(ErrorCode::kInvalidValue, fmt::format("rule '{}' does not revise the structure", change.rule));
}

const std::vector<std::unique_ptr<Rule>>& AllRules() {
  static const auto* const kRules = [] {
    auto* rules = new std::vector<std::unique_ptr<Rule>>;
    // Structure first: what follows is chosen for the revised model.
    rules->push_back(MakePadDimensionsRule());
    rules->push_back(MakeMergeSharedInputRule());
    rules->push_back(MakeJaggedPackingRule());
    // Tables and their exchange.
    rules->push_back(MakeIndexDedupRule());
    rules->push_back(MakeShardingRule());
    rules->push_back(MakeReplicateTablesRule());
    rules->push_back(MakeReplicateHotRowsRule());
    rules->push_back(MakeExchangeDtypeRule());
    rules->push_back(MakeTableKernelsRule());
    // Execution.
    rules->push_back(MakeCompileRule());
    rules->push_back(MakeAttentionRule());
    rules->push_back(MakeGroupedProductsRule());
    rules->push_back(MakeGraphCaptureRule());
    rules->push_back(MakePipelineRule());
    rules->push_back(MakeGradientOverlapRule());
    rules->push_back(MakeMultiStreamRule());
    // Memory against time.
    rules->push_back(MakeHostTablesRule());
    rules->push_back(MakeRecomputeRule());
    rules->push_back(MakeAccumulationRule());
    rules->push_back(MakeDenseParallelismRule());
    // After what changes the load of a table.
    rules->push_back(MakeBalanceRule());
    // Only when allowed by name.
    rules->push_back(MakeGradientDtypeRule());
    rules->push_back(MakeRowDtypeRule());
    rules->push_back(MakeEmbeddingOptimizerRule());
    rules->push_back(MakeOptimizerStateRule());
    rules->push_back(MakeSharding2dRule());
    rules->push_back(MakeGemmDtypeRule());
    rules->push_back(MakeBatchRule());
    return rules;
  }();
  return *kRules;
}

std::vector<std::string> StructureRuleNames() {
  std::vector<std::string> names;
  for (const auto& rule : AllRules()) {
    if (rule->RevisesStructure()) names.emplace_back(rule->name());
  }
  return names;
}

Result<Model> ApplyStructure(const Model& model, const Recipe& recipe) {
  Model revised = model;
  for (size_t i = 0; i < recipe.structure.size(); ++i) {
    const StructureChange& change = recipe.structure[i];
    const std::string place = fmt::format("recipe '{}': structure[{}]", recipe.id, i);
    const Rule* found = nullptr;
    for (const auto& rule : AllRules()) {
      if (change.rule == rule->name() && rule->RevisesStructure()) found = rule.get();
    }
    if (found == nullptr) {
      const std::vector<std::string> names = StructureRuleNames();
      return MakeError(ErrorCode::kNotFound,
                       fmt::format("{}.rule: no structure rule is named '{}'{}; known: {}", place, change.rule,
                                   DidYouMean(change.rule, names), Join(names, ", ")));
    }
    const Status applied = found->Apply(change, &revised);
    if (!applied) {
      return MakeError(applied.error().code,
                       fmt::format("{}: {} on model '{}': {}", place, change.rule, model.id, applied.error().message));
    }
  }
  return revised;
}

}  // namespace portolan
