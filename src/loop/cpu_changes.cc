#include "loop/cpu_changes.h"

#include <algorithm>
#include <utility>

namespace portolan {
namespace {

constexpr double kLeastGain = 0.002;

// Mean size of the job's own batches may fall short of the recipe's; statistics are of what is read.
double OtherBytes(const NetworkPlan& plan) {
  return 4.0 * static_cast<double>(plan.arena_floats) + 12.0 * static_cast<double>(plan.dense_parameters);
}

}  // namespace

Recipe PortedRecipe(const Recipe& recipe) {
  Recipe ported = recipe;
  ported.id = recipe.id + "_ported";
  ported.gemm = ported.activation = ported.normalization = DType::kFp32;
  ported.embedding_row = ported.embedding_output = DType::kFp32;
  ported.fusion = Fusion::kEager;
  ported.table_kernels = TableKernels::kPerTable;
  ported.embedding_update = EmbeddingUpdate::kSeparate;
  ported.recompute = Recompute::kNone;
  return ported;
}

std::vector<CpuChange> ProposeCpuChanges(const Model& model, const Recipe& recipe, const std::set<std::string>& allow) {
  std::vector<CpuChange> changes;
  const auto propose = [&](const char* rule, const char* option, const char* what, MathsClass maths, auto set) {
    if (maths == MathsClass::kChangesMaths && allow.count(rule) == 0) return;
    CpuChange change{rule, option, what, maths, recipe};
    set(change.recipe);
    changes.push_back(std::move(change));
  };
  if (recipe.fusion == Fusion::kEager) {
    propose("compile", "full",
            "bias, activation and its gradients in one pass; joins write in place; one optimizer pass",
            MathsClass::kReassociates, [](Recipe& r) { r.fusion = Fusion::kFull; });
  }
  if (recipe.table_kernels == TableKernels::kPerTable && model.tables.size() > 1) {
    propose("merge_tables", "batched", "one lookup and one update kernel for all tables", MathsClass::kExact,
            [](Recipe& r) { r.table_kernels = TableKernels::kBatched; });
  }
  if (recipe.embedding_update == EmbeddingUpdate::kSeparate && !model.tables.empty()) {
    propose("embedding_update", "fused", "rows summed and updated in one pass, without gradient tensors",
            MathsClass::kReassociates, [](Recipe& r) { r.embedding_update = EmbeddingUpdate::kFused; });
  }
  if (recipe.gemm == DType::kFp32) {
    propose("gemm_dtype", "bf16", "matrix products of inputs rounded to bf16, summed in fp32",
            MathsClass::kChangesMaths, [](Recipe& r) { r.gemm = DType::kBf16; });
  }
  for (const auto& [option, dtype, what] :
       {std::tuple{"bf16", DType::kBf16, "embedding rows in bf16, rounded stochastically"},
        std::tuple{"fp16", DType::kFp16, "embedding rows in fp16, rounded stochastically"}}) {
    if (recipe.embedding_row != DType::kFp32 || model.tables.empty()) continue;
    propose("row_dtype", option, what, MathsClass::kChangesMaths,
            [&, row = dtype](Recipe& r) { r.embedding_row = row; });
  }
  const EmbeddingOptimizer optimizer = recipe.embedding_optimizer.value_or(model.embedding_optimizer);
  if (optimizer == EmbeddingOptimizer::kAdagrad && !model.tables.empty()) {
    propose("embedding_optimizer", "rowwise_adagrad", "one sum of squares a row in place of one an element",
            MathsClass::kChangesMaths, [](Recipe& r) { r.embedding_optimizer = EmbeddingOptimizer::kRowwiseAdagrad; });
  }
  return changes;
}

Result<StepPrice> PriceRecipe(const Job& job, const Recipe& recipe, const std::vector<Batch>& batches,
                              const Calibration& calibration) {
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkOptions options, OptionsFromRecipe(job.model, recipe, &notes));
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job.model, options));
  const std::vector<TableLookups> lookups =
      CountLookups(plan, batches, {calibration.near_table_bytes, calibration.kept_bytes}, OtherBytes(plan));
  return PriceStep(plan, lookups, calibration, job.clip_norm > 0 ? Clipping::kNorm : Clipping::kNone);
}

Result<CpuPlan> PlanOnCpu(const Job& job, const Recipe& start, const std::vector<Batch>& batches,
                          const Calibration& calibration) {
  CpuPlan plan;
  plan.recipe = start;
  PORTOLAN_ASSIGN_OR_RETURN(StepPrice now, PriceRecipe(job, start, batches, calibration));
  plan.priced = 1;
  for (;;) {
    double best = now.Total() * (1 - kLeastGain);
    const std::vector<CpuChange> changes = ProposeCpuChanges(job.model, plan.recipe, job.allow);
    const CpuChange* taken = nullptr;
    StepPrice after;
    for (const CpuChange& change : changes) {
      const Result<StepPrice> price = PriceRecipe(job, change.recipe, batches, calibration);
      if (!price) return tl::make_unexpected(price.error());
      ++plan.priced;
      if (price->Total() >= best) continue;
      best = price->Total();
      taken = &change;
      after = *price;
    }
    if (taken == nullptr) break;
    plan.changes.push_back({*taken, now.Total(), after.Total()});
    plan.recipe = taken->recipe;
    now = after;
  }
  const std::set<std::string> all = {"gemm_dtype", "row_dtype", "embedding_optimizer"};
  for (CpuChange& change : ProposeCpuChanges(job.model, plan.recipe, all)) {
    if (change.maths != MathsClass::kChangesMaths || job.allow.count(change.rule) > 0) continue;
    PORTOLAN_ASSIGN_OR_RETURN(const StepPrice price, PriceRecipe(job, change.recipe, batches, calibration));
    ++plan.priced;
    if (price.Total() < now.Total() * (1 - kLeastGain)) {
      plan.not_allowed.push_back({std::move(change), now.Total(), price.Total()});
    }
  }
  return plan;
}

}  // namespace portolan
