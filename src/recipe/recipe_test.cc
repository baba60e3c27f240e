#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace portolan {
namespace {

Result<Recipe> Read(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "r.yaml");
  if (!value) return tl::make_unexpected(value.error());
  return ReadRecipe(*value);
}

// "file:line: field: message" of a file that must be refused.
std::string ErrorOf(const std::string& text) {
  const Result<Recipe> recipe = Read(text);
  return recipe ? "accepted" : FormatError(recipe.error());
}

Recipe Load(const std::string& id) {
  const Result<Recipe> recipe = LoadRecipe("data/recipes/" + id + ".yaml");
  if (!recipe) {
    ADD_FAILURE() << FormatError(recipe.error());
    return {};
  }
  return *recipe;
}

TEST(RecipeTest, EveryFileLoadsAndIsComplete) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("data/recipes")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Result<Recipe> recipe = LoadRecipe(entry.path().string());
    ASSERT_TRUE(recipe) << FormatError(recipe.error());
    ++count;
    EXPECT_EQ(recipe->id, entry.path().stem().string());
    EXPECT_FALSE(recipe->description.empty());
    EXPECT_FALSE(recipe->source.empty());
    EXPECT_GE(recipe->GlobalBatch(8), 8);
  }
  EXPECT_GE(count, 6);
}

TEST(RecipeTest, SmallestRecipeHasTheDefaults) {
  const Result<Recipe> recipe = Read("recipe: r\nlocal_batch: 64\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->GlobalBatch(8), 512);
  EXPECT_EQ(recipe->gemm, DType::kBf16);
  EXPECT_EQ(recipe->embedding_row, DType::kFp32);
  EXPECT_EQ(recipe->sharding, Sharding::kAuto);
  EXPECT_EQ(recipe->data_parallel_max, Bytes(8e6));
  EXPECT_EQ(recipe->recompute, Recompute::kNone);
  EXPECT_FALSE(recipe->embedding_optimizer.has_value());
}

TEST(RecipeTest, GlobalBatchDoesNotDependOnTheDevices) {
  const Result<Recipe> recipe = Read("recipe: r\nglobal_batch: 4096\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->GlobalBatch(8), 4096);
  EXPECT_EQ(recipe->GlobalBatch(128), 4096);
}

TEST(RecipeTest, TablesInHostMemory) {
  EXPECT_EQ(Read("recipe: r\nlocal_batch: 1\n")->host_tables_min, Bytes(0)) << "none by default";
  const Result<Recipe> recipe = Read(
      "recipe: r\nlocal_batch: 1\nembedding: {host_tables_min_bytes: 1e10, host_cache_fraction: 0.05, tables: {a: "
      "{memory: host}, b: {sharding: row, memory: device}}}\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->host_tables_min, Bytes(1e10));
  EXPECT_EQ(recipe->host_cache_fraction, 0.05);
  EXPECT_EQ(recipe->tables.at("a").memory, TableMemory::kHost);
  EXPECT_EQ(recipe->tables.at("b").memory, TableMemory::kDevice);
  for (const char* value : {"0", "-0.5", "1.01", "nan", "inf", "half"}) {
    const std::string error =
        ErrorOf(std::string("recipe: r\nlocal_batch: 1\nembedding: {host_cache_fraction: ") + value + "}\n");
    EXPECT_NE(error.find("embedding.host_cache_fraction"), std::string::npos) << value << ": " << error;
  }
  EXPECT_NE(ErrorOf("recipe: r\nlocal_batch: 1\nembedding: {tables: {a: {memory: disk}}}\n").find("device, host"),
            std::string::npos);
}

// Without a word about them, exchanged values have the format of the pooled rows and norms that of the activations.
TEST(RecipeTest, FormatsFollowOneAnother) {
  const Result<Recipe> recipe =
      Read("recipe: r\nlocal_batch: 1\nprecision: {embedding_output: fp16, activation: fp16}\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->embedding_forward_comm, DType::kFp16);
  EXPECT_EQ(recipe->embedding_backward_comm, DType::kFp16);
  EXPECT_EQ(recipe->normalization, DType::kFp16);
}

// A merged product has the format of the first block that it merges.
TEST(RecipeTest, FormatsOfSingleBlocks) {
  const Result<Recipe> recipe = Read("recipe: r\nlocal_batch: 1\nprecision: {gemm: fp16, gemm_by_block: {top: fp8}}\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->GemmOf("top"), DType::kFp8E4m3);
  EXPECT_EQ(recipe->GemmOf("top.shared"), DType::kFp8E4m3);
  EXPECT_EQ(recipe->GemmOf("bottom"), DType::kFp16);
  EXPECT_EQ(recipe->GemmOf(".shared"), DType::kFp16);
}

TEST(RecipeTest, HugeCtrMlperf) {
  const Recipe recipe = Load("hugectr_mlperf");
  EXPECT_EQ(recipe.GlobalBatch(8), 55296);
  EXPECT_EQ(recipe.gemm, DType::kFp16);
  EXPECT_EQ(recipe.embedding_row, DType::kFp32);
  EXPECT_EQ(recipe.index, DType::kInt32);
  EXPECT_EQ(recipe.fusion, Fusion::kFull);
  EXPECT_EQ(recipe.launch, Launch::kGraph);
  EXPECT_EQ(recipe.concurrency, Concurrency::kMultiStream);
  EXPECT_EQ(recipe.pipeline, Pipeline::kIndexExchange);
  EXPECT_EQ(recipe.node_exchange, NodeExchange::kDirectStores);
  EXPECT_EQ(recipe.gradient_overlap, GradientOverlap::kNone);
  EXPECT_EQ(Load("hugectr_mlperf_nodes").data_parallel_max, Bytes(12.5e6));
}

TEST(RecipeTest, Dlrmv4) {
  const Recipe recipe = Load("dlrmv4_mlperf");
  EXPECT_EQ(recipe.GlobalBatch(8), 8192);
  EXPECT_EQ(recipe.sharding, Sharding::kRow);
  EXPECT_EQ(recipe.dedup, IndexDedup::kBeforeExchange);
  EXPECT_EQ(recipe.attention, AttentionImplementation::kTriton);
  EXPECT_EQ(recipe.recompute, Recompute::kCheap);
  EXPECT_EQ(recipe.gradient_clip, GradientClip::kNorm);
}

TEST(RecipeTest, TablesAndRecomputedBlocks) {
  const Result<Recipe> recipe = Read(
      "recipe: r\nlocal_batch: 64\n"
      "embedding:\n  tables:\n    big: {sharding: column, shards: 4}\n    small: {sharding: data_parallel}\n"
      "execution: {recompute: [bottom, top]}\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  ASSERT_EQ(recipe->tables.size(), 2u);
  EXPECT_EQ(recipe->tables.at("big").sharding, Sharding::kColumn);
  EXPECT_EQ(recipe->tables.at("big").shards, 4);
  EXPECT_EQ(recipe->tables.at("small").sharding, Sharding::kDataParallel);
  EXPECT_EQ(recipe->recompute, Recompute::kListed);
  EXPECT_EQ(recipe->recompute_blocks, (std::vector<std::string>{"bottom", "top"}));
}

TEST(RecipeTest, Errors) {
  struct Case {
    const char* text;  // after "recipe: r\nlocal_batch: 64\n"
    const char* error;
  };
  const Case cases[] = {
      {"global_batch: 64\n", "r.yaml:1: exactly one of 'global_batch' and 'local_batch' is required"},
      {"precision: {gemm: fp12}\n",
       "r.yaml:3: precision.gemm: must be one of fp64, fp32, tf32, fp16, bf16, fp8, fp8_e4m3, fp8_e5m2, mxfp8, mxfp6, "
       "mxfp4, int8, got 'fp12'; did you mean 'fp32'?"},
      {"precision: {activation: fp8}\n", "r.yaml:3: precision.activation: must be one of fp32, fp16, bf16, got 'fp8'"},
      {"precision: {index: fp32}\n", "r.yaml:3: precision.index: must be one of int32, int64, got 'fp32'"},
      {"precision: {gem: fp16}\n",
       "r.yaml:3: precision.gem: unknown key; accepted: gemm, activation, normalization, embedding_row, "
       "embedding_output, index, gemm_by_block; did you mean 'gemm'?"},
      {"precision: [fp16]\n", "r.yaml:3: precision: must be a map, got a list"},
      {"embedding: {sharding: rows}\n",
       "r.yaml:3: embedding.sharding: must be one of auto, data_parallel, table, column, row, table_row, got 'rows'; "
       "did you mean 'row'?"},
      {"embedding: {data_parallel_max_bytes: -1}\n",
       "r.yaml:3: embedding.data_parallel_max_bytes: must be between 0 and 1000000000000000, got '-1'"},
      {"embedding: {data_parallel_max_bytes: nan}\n",
       "r.yaml:3: embedding.data_parallel_max_bytes: must be a finite number, got 'nan'"},
      {"embedding: {optimizer: adamw}\n",
       "r.yaml:3: embedding.optimizer: must be one of sgd, adagrad, rowwise_adagrad, adam, rowwise_adam, got 'adamw'; "
       "did you mean 'adam'?"},
      {"embedding:\n  tables:\n    t: {sharding: column, shards: 0}\n",
       "r.yaml:5: embedding.tables.t.shards: must be between 1 and 1048576, got '0'"},
      {"embedding:\n  tables:\n    t: {shard: column}\n",
       "r.yaml:5: embedding.tables.t.shard: unknown key; accepted: sharding, shards, memory; did you mean 'shards'?"},
      {"embedding:\n  tables:\n    t: row\n", "r.yaml:5: embedding.tables.t: must be a map, got 'row'"},
      {"communication: {pipeline: all}\n",
       "r.yaml:3: communication.pipeline: must be one of none, index_exchange, embedding, got 'all'"},
      {"execution: {fusion: partial}\n",
       "r.yaml:3: execution.fusion: must be one of full, compiled, eager, got 'partial'"},
      {"execution: {recompute: some}\n",
       "r.yaml:3: execution.recompute: must be one of none, cheap, all, got 'some'; did you mean 'none'?"},
      {"execution: {recompute: {a: b}}\n", "r.yaml:3: execution.recompute: must be one of none, cheap, all, got a map"},
      {"execution: {recompute: [[a]]}\n", "r.yaml:3: execution.recompute[0]: must be text, got a list"},
      {"execution: {reserve_bytes: -1}\n",
       "r.yaml:3: execution.reserve_bytes: must be between 0 and 1000000000000000, got '-1'"},
      {"execution: {launch: yes}\n", "r.yaml:3: execution.launch: must be one of graph, executor, stream, got 'yes'"},
      {"precision: {gemm_by_block: {top: fp9}}\n",
       "r.yaml:3: precision.gemm_by_block.top: must be one of fp64, fp32, tf32, fp16, bf16, fp8, fp8_e4m3, fp8_e5m2, "
       "mxfp8, mxfp6, mxfp4, int8, got 'fp9'; did you mean 'fp8'?"},
      {"precision: {gemm_by_block: fp8}\n", "r.yaml:3: precision.gemm_by_block: must be a map, got 'fp8'"},
      {"embedding: {replicas: 0}\n", "r.yaml:3: embedding.replicas: must be between 1 and 1048576, got '0'"},
      {"embedding: {replicas: 1.5}\n", "r.yaml:3: embedding.replicas: must be a whole number, got '1.5'"},
      {"embedding: {replica_layout: near}\n",
       "r.yaml:3: embedding.replica_layout: must be one of strided, contiguous, got 'near'"},
      {"embedding: {replica_sync_steps: -4}\n",
       "r.yaml:3: embedding.replica_sync_steps: must be between 1 and 1000000000, got '-4'"},
      {"embedding: {optimizer_state: int8}\n",
       "r.yaml:3: embedding.optimizer_state: must be one of fp32, fp16, bf16, got 'int8'"},
      {"execution: {dense_optimizer_state: nan}\n",
       "r.yaml:3: execution.dense_optimizer_state: must be one of fp32, fp16, bf16, got 'nan'"},
      {"embedding: {host_cache: mru}\n",
       "r.yaml:3: embedding.host_cache: must be one of lfu, lru, got 'mru'; did you mean 'lru'?"},
      {"source: 1\nsource: 2\n", "r.yaml:4: key 'source' stands twice in one map; it is first given on line 3"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(ErrorOf(std::string("recipe: r\nlocal_batch: 64\n") + c.text), c.error) << c.text;
  EXPECT_EQ(ErrorOf("recipe: r\n"), "r.yaml:1: exactly one of 'global_batch' and 'local_batch' is required");
  EXPECT_EQ(ErrorOf("local_batch: 1\n"), "r.yaml:1: recipe: is required but missing");
  EXPECT_EQ(ErrorOf("recipe: r\nlocal_batch: 0\n"),
            "r.yaml:2: local_batch: must be between 1 and 1000000000000, got '0'");
  EXPECT_EQ(ErrorOf("recipe: r\nlocal_batch: 2.5\n"), "r.yaml:2: local_batch: must be a whole number, got '2.5'");
  EXPECT_EQ(ErrorOf("hello"), "r.yaml:1: must be a map, got 'hello'");
}

TEST(RecipeTest, UnknownKeysNameTheNearestOne) {
  const std::string error = ErrorOf("recipe: r\nlocal_batch: 64\nexecution: {fusio: full}\n");
  EXPECT_EQ(error.find("r.yaml:3: execution.fusio: unknown key; accepted: fusion, "), 0u) << error;
  EXPECT_NE(error.find("did you mean 'fusion'?"), std::string::npos) << error;
}

TEST(RecipeTest, MissingFile) {
  const Result<Recipe> recipe = LoadRecipe("data/recipes/no_such_recipe.yaml");
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error().code, ErrorCode::kNotFound);
}

TEST(RecipeTest, ShardingNames) {
  EXPECT_STREQ(ShardingName(Sharding::kTableRow), "table_row");
  EXPECT_STREQ(ShardingName(Sharding::kDataParallel), "data_parallel");
}

}  // namespace
}  // namespace portolan
