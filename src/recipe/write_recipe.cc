#include <fmt/format.h>

#include "model/optimizer_names.h"
#include "recipe/recipe.h"
#include "recipe/recipe_names.h"

namespace portolan {
namespace {

// A double-quoted YAML scalar.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

}  // namespace

std::string WriteRecipe(const Recipe& r) {
  std::string out = fmt::format("recipe: {}\n", Quoted(r.id));
  if (!r.description.empty()) out += fmt::format("description: {}\n", Quoted(r.description));
  if (!r.source.empty()) out += fmt::format("source: {}\n", Quoted(r.source));
  if (r.global_batch > 0) {
    out += fmt::format("global_batch: {}\n", r.global_batch);
  } else {
    out += fmt::format("local_batch: {}\n", r.local_batch);
  }
  out += fmt::format(
      "precision:\n  gemm: {}\n  activation: {}\n  normalization: {}\n  embedding_row: {}\n  embedding_output: {}\n  "
      "index: {}\n",
      DTypeName(r.gemm), DTypeName(r.activation), DTypeName(r.normalization), DTypeName(r.embedding_row),
      DTypeName(r.embedding_output), DTypeName(r.index));
  if (!r.gemm_by_block.empty()) {
    out += "  gemm_by_block:\n";
    for (const auto& [block, format] : r.gemm_by_block) {
      out += fmt::format("    {}: {}\n", Quoted(block), DTypeName(format));
    }
  }
  out += fmt::format(
      "embedding:\n  sharding: {}\n  balance: {}\n  data_parallel_max_bytes: {}\n  host_tables_min_bytes: "
      "{}\n  host_cache_fraction: {}\n  host_cache: {}\n  replicas: {}\n  replica_layout: {}\n  "
      "replica_sync_steps: {}\n  replicated_hot_rows: {}\n  dedup: {}\n  kernels: {}\n  update: {}\n  "
      "optimizer_state: {}\n",
      EnumName(kShardingNames, r.sharding), EnumName(kBalanceNames, r.balance), r.data_parallel_max.value,
      r.host_tables_min.value, r.host_cache_fraction, EnumName(kHostCacheNames, r.host_cache), r.replicas,
      EnumName(kReplicaLayoutNames, r.replica_layout), r.replica_sync_steps, r.hot_rows, EnumName(kDedupNames, r.dedup),
      EnumName(kTableKernelNames, r.table_kernels), EnumName(kEmbeddingUpdateNames, r.embedding_update),
      DTypeName(r.embedding_state));
  if (r.embedding_optimizer) {
    out += fmt::format("  optimizer: {}\n", EnumName(kEmbeddingOptimizerNames, *r.embedding_optimizer));
  }
  if (!r.tables.empty()) {
    out += "  tables:\n";
    for (const auto& [name, table] : r.tables) {
      out += fmt::format("    {}: {{sharding: {}, shards: {}, memory: {}}}\n", Quoted(name),
                         EnumName(kShardingNames, table.sharding), table.shards,
                         EnumName(kTableMemoryNames, table.memory));
    }
  }
  out += fmt::format(
      "communication:\n  embedding_forward: {}\n  embedding_backward: {}\n  dense_gradient: {}\n  "
      "dense_gradient_overlap: {}\n  node_exchange: {}\n  pipeline: {}\n",
      DTypeName(r.embedding_forward_comm), DTypeName(r.embedding_backward_comm), DTypeName(r.dense_gradient_comm),
      EnumName(kGradientOverlapNames, r.gradient_overlap), EnumName(kNodeExchangeNames, r.node_exchange),
      EnumName(kPipelineNames, r.pipeline));
  out += fmt::format(
      "execution:\n  fusion: {}\n  launch: {}\n  concurrency: {}\n  attention: {}\n  dense_parallelism: {}\n  "
      "grouped_products: {}\n  accumulation_steps: {}\n  gradient_clip: {}\n  dense_optimizer_state: {}\n",
      EnumName(kFusionNames, r.fusion), EnumName(kLaunchNames, r.launch), EnumName(kConcurrencyNames, r.concurrency),
      EnumName(kAttentionNames, r.attention), EnumName(kDenseParallelismNames, r.dense_parallelism),
      EnumName(kGroupedProductNames, r.grouped_products), r.accumulation_steps,
      EnumName(kGradientClipNames, r.gradient_clip), DTypeName(r.dense_state));
  if (r.dense_optimizer) {
    out += fmt::format("  dense_optimizer: {}\n", EnumName(kDenseOptimizerNames, *r.dense_optimizer));
  }
  if (r.recompute == Recompute::kListed) {
    out += "  recompute:\n";
    for (const std::string& block : r.recompute_blocks) out += "    - " + Quoted(block) + "\n";
  } else {
    out += fmt::format("  recompute: {}\n", r.recompute == Recompute::kAll     ? "all"
                                            : r.recompute == Recompute::kCheap ? "cheap"
                                                                               : "none");
  }
  out += fmt::format("  reserve_bytes: {}\n", r.reserve.value);
  if (!r.structure.empty()) {
    out += "structure:\n";
    for (const StructureChange& change : r.structure) {
      out += fmt::format("  - {{rule: {}, multiple: {}}}\n", change.rule, change.multiple);
    }
  }
  return out;
}

}  // namespace portolan
