#include <fmt/format.h>

#include <algorithm>

#include "engine/network.h"

// What of a recipe this engine does, and by which kernels; what it does not is refused by its field.
namespace portolan {
namespace {

tl::unexpected<Error> Refuse(const std::string& field, const std::string& message) {
  return tl::make_unexpected(Error{ErrorCode::kUnsupported, message, {}, 0, field});
}

Result<kernels::RowOptimizer> RowOptimizerOf(EmbeddingOptimizer optimizer) {
  switch (optimizer) {
    case EmbeddingOptimizer::kSgd:
      return kernels::RowOptimizer::kSgd;
    case EmbeddingOptimizer::kAdagrad:
      return kernels::RowOptimizer::kAdagrad;
    case EmbeddingOptimizer::kRowwiseAdagrad:
      return kernels::RowOptimizer::kRowwiseAdagrad;
    case EmbeddingOptimizer::kAdam:
      return kernels::RowOptimizer::kAdam;
    case EmbeddingOptimizer::kRowwiseAdam:
      return kernels::RowOptimizer::kRowwiseAdam;
    case EmbeddingOptimizer::kNone:
      break;
  }
  return Refuse("embedding.optimizer", "must be an optimizer");
}

kernels::DenseUpdateKind DenseKindOf(DenseOptimizer optimizer) {
  switch (optimizer) {
    case DenseOptimizer::kSgd:
      return kernels::DenseUpdateKind::kSgd;
    case DenseOptimizer::kMomentum:
      return kernels::DenseUpdateKind::kMomentum;
    case DenseOptimizer::kAdagrad:
      return kernels::DenseUpdateKind::kAdagrad;
    case DenseOptimizer::kAdam:
      return kernels::DenseUpdateKind::kAdam;
  }
  return kernels::DenseUpdateKind::kSgd;
}

}  // namespace

Result<NetworkOptions> OptionsFromRecipe(const Model& model, const Recipe& recipe, std::vector<std::string>* notes) {
  NetworkOptions options;
  options.batch = recipe.GlobalBatch(1);
  constexpr int64_t kMaxBatch = int64_t{1} << 24;
  if (options.batch < 1 || options.batch > kMaxBatch) {
    return Refuse("global_batch", fmt::format("one CPU trains batches of 1 to {}, got {}", kMaxBatch, options.batch));
  }
  options.micro_batches = std::min(recipe.accumulation_steps, options.batch);
  switch (recipe.gemm) {
    case DType::kFp32:
      break;
    case DType::kTf32:
      notes->push_back("precision.gemm tf32 is computed in fp32 on the CPU");
      break;
    case DType::kBf16:
      options.gemm = kernels::GemmFormat::kBf16;
      break;
    default:
      return Refuse("precision.gemm", fmt::format("'{}' products are not built on the CPU; accepted: fp32, tf32, bf16",
                                                  DTypeName(recipe.gemm)));
  }
  switch (recipe.embedding_row) {
    case DType::kFp32:
      break;
    case DType::kFp16:
      options.row = kernels::RowFormat::kFp16;
      break;
    case DType::kBf16:
      options.row = kernels::RowFormat::kBf16;
      break;
    case DType::kInt8:
      options.row = kernels::RowFormat::kInt8;
      break;
    default:
      return Refuse("precision.embedding_row", fmt::format("'{}' rows are not built; accepted: fp32, fp16, bf16, int8",
                                                           DTypeName(recipe.embedding_row)));
  }
  if (recipe.activation != DType::kFp32 || recipe.embedding_output != DType::kFp32) {
    notes->push_back("activations and pooled rows are kept in fp32 on the CPU");
  }
  if (recipe.recompute != Recompute::kNone) notes->push_back("activations are kept, not recomputed, on the CPU");
  PORTOLAN_ASSIGN_OR_RETURN(options.row_optimizer,
                            RowOptimizerOf(recipe.embedding_optimizer.value_or(model.embedding_optimizer)));
  options.fusion = recipe.fusion;
  options.table_kernels = recipe.table_kernels;
  options.embedding_update = recipe.embedding_update;
  options.dense_optimizer = DenseKindOf(recipe.dense_optimizer.value_or(model.dense_optimizer));
  return options;
}

}  // namespace portolan
