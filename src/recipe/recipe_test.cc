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

// Without a word about them, exchanged values have the format of the pooled rows and norms that of the activations.
TEST(RecipeTest, FormatsFollowOneAnother) {
  const Result<Recipe> recipe =
      Read("recipe: r\nlocal_batch: 1\nprecision: {embedding_output: fp16, activation: fp16}\n");
  ASSERT_TRUE(recipe) << FormatError(recipe.error());
  EXPECT_EQ(recipe->embedding_forward_comm, DType::kFp16);
  EXPECT_EQ(recipe->embedding_backward_comm, DType::kFp16);
  EXPECT_EQ(recipe->normalization, DType::kFp16);
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
      {"global_batch: 64\n", ""},
      {"precision: {gemm: fp12}\n", ""},
      {"precision: {activation: fp8}\n", ""},
      {"precision: {index: fp32}\n", ""},
      {"precision: {gem: fp16}\n", ""},
      {"precision: [fp16]\n", ""},
      {"embedding: {sharding: rows}\n", ""},
      {"embedding: {data_parallel_max_bytes: -1}\n", ""},
      {"embedding: {data_parallel_max_bytes: nan}\n", ""},
      {"embedding: {optimizer: adamw}\n", ""},
      {"embedding:\n  tables:\n    t: {sharding: column, shards: 0}\n", ""},
      {"embedding:\n  tables:\n    t: {shard: column}\n", ""},
      {"embedding:\n  tables:\n    t: row\n", ""},
      {"communication: {pipeline: all}\n", ""},
      {"execution: {fusion: partial}\n", ""},
      {"execution: {recompute: some}\n", ""},
      {"execution: {recompute: {a: b}}\n", ""},
      {"execution: {recompute: [[a]]}\n", ""},
      {"execution: {reserve_bytes: -1}\n", ""},
      {"execution: {launch: yes}\n", ""},
      {"source: 1\nsource: 2\n", ""},
  };
  for (const Case& c : cases)
    EXPECT_EQ(ErrorOf(std::string("recipe: r\nlocal_batch: 64\n") + c.text), c.error) << c.text;
  EXPECT_EQ(ErrorOf("recipe: r\n"), "");
  EXPECT_EQ(ErrorOf("local_batch: 1\n"), "");
  EXPECT_EQ(ErrorOf("recipe: r\nlocal_batch: 0\n"), "");
  EXPECT_EQ(ErrorOf("recipe: r\nlocal_batch: 2.5\n"), "");
  EXPECT_EQ(ErrorOf("hello"), "");
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
