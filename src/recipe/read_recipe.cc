#include <fmt/format.h>

#include "base/yaml_enum.h"
#include "model/optimizer_names.h"
#include "recipe/recipe.h"
#include "recipe/recipe_names.h"
#include "recipe/rules/rule.h"

namespace portolan {
namespace {

DType ReadDType(YamlMap& map, const std::string& key, const std::vector<std::string>& accepted, DType fallback) {
  const std::string name = map.OneOf(key, accepted, DTypeName(fallback));
  return ParseDType(name).value_or(fallback);
}

const std::vector<std::string> kGemmDTypes = {"fp64",     "fp32",     "tf32",  "fp16",  "bf16",  "fp8",
                                              "fp8_e4m3", "fp8_e5m2", "mxfp8", "mxfp6", "mxfp4", "int8"};
const std::vector<std::string> kStoredDTypes = {"fp32", "fp16", "bf16"};
const std::vector<std::string> kRowDTypes = {"fp32", "fp16", "bf16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8"};
const std::vector<std::string> kIndexDTypes = {"int32", "int64"};

Status ReadPrecision(const YamlValue& value, Recipe& recipe) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  recipe.gemm = ReadDType(map, "gemm", kGemmDTypes, recipe.gemm);
  recipe.activation = ReadDType(map, "activation", kStoredDTypes, recipe.activation);
  recipe.normalization = ReadDType(map, "normalization", kStoredDTypes, recipe.activation);
  recipe.embedding_row = ReadDType(map, "embedding_row", kRowDTypes, recipe.embedding_row);
  recipe.embedding_output = ReadDType(map, "embedding_output", kStoredDTypes, recipe.embedding_output);
  recipe.index = ReadDType(map, "index", kIndexDTypes, recipe.index);
  map.Visit("gemm_by_block", [&recipe](const YamlValue& blocks) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap names, blocks.Map());
    for (const auto& [name, format] : names.Entries()) {
      PORTOLAN_ASSIGN_OR_RETURN(const std::string text, format.OneOf(kGemmDTypes));
      recipe.gemm_by_block[name] = ParseDType(text).value_or(recipe.gemm);
    }
    return names.Finish();
  });
  return map.Finish();
}

Status ReadEmbedding(const YamlValue& value, Recipe& recipe) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  recipe.sharding = ReadEnum(map, "sharding", kShardingNames, recipe.sharding);
  recipe.balance = ReadEnum(map, "balance", kBalanceNames, recipe.balance);
  recipe.data_parallel_max = Bytes(map.Number("data_parallel_max_bytes", {0, 1e15}, recipe.data_parallel_max.value));
  recipe.host_tables_min = Bytes(map.Number("host_tables_min_bytes", {0, 1e18}, 0));
  recipe.host_cache_fraction = map.Number("host_cache_fraction", {1e-4, 1}, recipe.host_cache_fraction);
  recipe.host_cache = ReadEnum(map, "host_cache", kHostCacheNames, recipe.host_cache);
  recipe.replicas = static_cast<int>(map.Integer("replicas", {1, 1048576}, 1));
  recipe.replica_layout = ReadEnum(map, "replica_layout", kReplicaLayoutNames, recipe.replica_layout);
  recipe.replica_sync_steps = map.Integer("replica_sync_steps", {1, 1e9}, 1);
  recipe.hot_rows = map.Integer("replicated_hot_rows", {0, 1e9}, 0);
  recipe.dedup = ReadEnum(map, "dedup", kDedupNames, recipe.dedup);
  if (map.Has("optimizer")) {
    recipe.embedding_optimizer = ReadEnum(map, "optimizer", kEmbeddingOptimizerNames, EmbeddingOptimizer::kSgd);
  }
  recipe.embedding_state = ReadDType(map, "optimizer_state", kStoredDTypes, recipe.embedding_state);
  recipe.table_kernels = ReadEnum(map, "kernels", kTableKernelNames, recipe.table_kernels);
  recipe.embedding_update = ReadEnum(map, "update", kEmbeddingUpdateNames, recipe.embedding_update);
  map.Visit("tables", [&recipe](const YamlValue& tables) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap names, tables.Map());
    for (const auto& [name, entry] : names.Entries()) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap one, entry.Map());
      TableSharding sharding;
      sharding.sharding = ReadEnum(one, "sharding", kShardingNames, Sharding::kAuto);
      sharding.shards = static_cast<int>(one.Integer("shards", {1, 1048576}, 1));
      sharding.memory = ReadEnum(one, "memory", kTableMemoryNames, TableMemory::kAuto);
      PORTOLAN_RETURN_IF_ERROR(one.Finish());
      recipe.tables[name] = sharding;
    }
    return names.Finish();
  });
  return map.Finish();
}

Status ReadCommunication(const YamlValue& value, Recipe& recipe) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  recipe.embedding_forward_comm = ReadDType(map, "embedding_forward", kRowDTypes, recipe.embedding_forward_comm);
  recipe.embedding_backward_comm = ReadDType(map, "embedding_backward", kRowDTypes, recipe.embedding_backward_comm);
  recipe.dense_gradient_comm = ReadDType(map, "dense_gradient", kStoredDTypes, recipe.dense_gradient_comm);
  recipe.gradient_overlap = ReadEnum(map, "dense_gradient_overlap", kGradientOverlapNames, recipe.gradient_overlap);
  recipe.node_exchange = ReadEnum(map, "node_exchange", kNodeExchangeNames, recipe.node_exchange);
  recipe.pipeline = ReadEnum(map, "pipeline", kPipelineNames, recipe.pipeline);
  return map.Finish();
}

Status ReadExecution(const YamlValue& value, Recipe& recipe) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  recipe.fusion = ReadEnum(map, "fusion", kFusionNames, recipe.fusion);
  recipe.launch = ReadEnum(map, "launch", kLaunchNames, recipe.launch);
  recipe.concurrency = ReadEnum(map, "concurrency", kConcurrencyNames, recipe.concurrency);
  recipe.attention = ReadEnum(map, "attention", kAttentionNames, recipe.attention);
  recipe.dense_parallelism = ReadEnum(map, "dense_parallelism", kDenseParallelismNames, recipe.dense_parallelism);
  if (map.Has("dense_optimizer")) {
    recipe.dense_optimizer = ReadEnum(map, "dense_optimizer", kDenseOptimizerNames, DenseOptimizer::kAdam);
  }
  recipe.dense_state = ReadDType(map, "dense_optimizer_state", kStoredDTypes, recipe.dense_state);
  recipe.grouped_products = ReadEnum(map, "grouped_products", kGroupedProductNames, recipe.grouped_products);
  recipe.accumulation_steps = map.Integer("accumulation_steps", {1, 65536}, 1);
  recipe.gradient_clip = ReadEnum(map, "gradient_clip", kGradientClipNames, recipe.gradient_clip);
  map.Visit("recompute", [&recipe](const YamlValue& recompute) -> Status {
    if (recompute.IsSequence()) {
      PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> names, recompute.Elements());
      recipe.recompute = Recompute::kListed;
      for (const YamlValue& name : names) {
        PORTOLAN_ASSIGN_OR_RETURN(std::string text, name.String());
        recipe.recompute_blocks.push_back(std::move(text));
      }
      return {};
    }
    PORTOLAN_ASSIGN_OR_RETURN(const std::string text, recompute.OneOf({"none", "cheap", "all"}));
    recipe.recompute = text == "all" ? Recompute::kAll : text == "cheap" ? Recompute::kCheap : Recompute::kNone;
    return {};
  });
  recipe.reserve = Bytes(map.Number("reserve_bytes", {0, 1e15}, recipe.reserve.value));
  return map.Finish();
}

Status ReadStructure(const YamlValue& value, Recipe& recipe) {
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
  for (const YamlValue& element : elements) {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
    StructureChange change;
    change.rule = map.OneOf("rule", StructureRuleNames());
    change.multiple = map.Integer("multiple", {1, 65536}, 1);
    PORTOLAN_RETURN_IF_ERROR(map.Finish());
    recipe.structure.push_back(std::move(change));
  }
  return {};
}

}  // namespace

Recipe DefaultRecipe() {
  Recipe recipe;
  recipe.id = "default";
  recipe.description = "bf16 compute, fp32 rows, automatic sharding, compiled kernels, local batch 1024";
  recipe.local_batch = 1024;
  return recipe;
}

DType Recipe::GemmOf(const std::string& block) const {
  if (gemm_by_block.empty()) return gemm;
  auto named = gemm_by_block.find(block);
  const std::string merged = ".shared";
  if (named == gemm_by_block.end() && block.size() > merged.size() && block.ends_with(merged)) {
    named = gemm_by_block.find(block.substr(0, block.size() - merged.size()));
  }
  return named == gemm_by_block.end() ? gemm : named->second;
}

const char* ShardingName(Sharding sharding) { return EnumName(kShardingNames, sharding); }

Result<Recipe> ReadRecipe(const YamlValue& value) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  Recipe recipe;
  recipe.normalization = recipe.activation;
  recipe.id = map.String("recipe");
  recipe.description = map.String("description", "");
  recipe.source = map.String("source", "");
  recipe.global_batch = map.Integer("global_batch", {1, 1e12}, 0);
  recipe.local_batch = map.Integer("local_batch", {1, 1e12}, 0);
  if (map.ok() && (recipe.global_batch > 0) == (recipe.local_batch > 0)) {
    map.Fail(value.MakeError(recipe.global_batch > 0 ? ErrorCode::kInvalidValue : ErrorCode::kMissingField,
                             "exactly one of 'global_batch' and 'local_batch' is required"));
  }
  map.Visit("precision", [&recipe](const YamlValue& v) { return ReadPrecision(v, recipe); });
  recipe.embedding_forward_comm = recipe.embedding_output;
  recipe.embedding_backward_comm = recipe.embedding_output;
  map.Visit("embedding", [&recipe](const YamlValue& v) { return ReadEmbedding(v, recipe); });
  map.Visit("communication", [&recipe](const YamlValue& v) { return ReadCommunication(v, recipe); });
  map.Visit("execution", [&recipe](const YamlValue& v) { return ReadExecution(v, recipe); });
  map.Visit("structure", [&recipe](const YamlValue& v) { return ReadStructure(v, recipe); });
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return recipe;
}

Result<Recipe> LoadRecipe(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(path));
  return ReadRecipe(value);
}

}  // namespace portolan
