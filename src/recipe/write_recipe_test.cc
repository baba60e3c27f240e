#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "model/optimizer_names.h"
#include "recipe/recipe.h"
#include "recipe/recipe_names.h"
#include "recipe/rules/rule.h"

namespace portolan {
namespace {

Result<Recipe> Read(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "r.yaml");
  if (!value) return tl::make_unexpected(value.error());
  return ReadRecipe(*value);
}

// What is written can be read, and writing that gives the same text; every field of the text comes from a field of the
// recipe, so that equal texts are equal recipes.
Recipe RoundTrip(const Recipe& recipe) {
  const std::string text = WriteRecipe(recipe);
  const Result<Recipe> again = Read(text);
  EXPECT_TRUE(again) << (again ? "" : FormatError(again.error())) << "\n" << text;
  if (!again) return {};
  EXPECT_EQ(WriteRecipe(*again), text);
  return *again;
}

TEST(WriteRecipeTest, EveryShippedRecipe) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("data/recipes")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Result<Recipe> recipe = LoadRecipe(entry.path().string());
    ASSERT_TRUE(recipe) << FormatError(recipe.error());
    const Recipe again = RoundTrip(*recipe);
    EXPECT_EQ(again.id, recipe->id);
    EXPECT_EQ(again.description, recipe->description);
    EXPECT_EQ(again.source, recipe->source);
    EXPECT_EQ(again.GlobalBatch(8), recipe->GlobalBatch(8));
    EXPECT_EQ(again.GlobalBatch(16), recipe->GlobalBatch(16)) << "a local batch stays one";
    ++count;
  }
  EXPECT_GE(count, 20);
}

class RandomRecipe {
 public:
  explicit RandomRecipe(unsigned seed) : random_(seed) {}
  Recipe Make() {
    Recipe r;
    r.id = Text();
    r.description = Text();
    r.source = Text();
    (Chance() ? r.global_batch : r.local_batch) = 1 + Below(1000000000);
    r.gemm = Pick({DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8E4m3, DType::kFp8E5m2});
    r.activation = Stored();
    r.normalization = Stored();
    r.embedding_row = Row();
    r.embedding_output = Stored();
    r.index = Pick({DType::kInt32, DType::kInt64});
    r.sharding = Any(kShardingNames);
    r.data_parallel_max = Bytes(static_cast<double>(Below(1000000000000)) / 7);
    r.host_tables_min = Bytes(static_cast<double>(Below(1000000000000)) / 3);
    r.host_cache_fraction = static_cast<double>(1 + Below(999)) / 999;
    for (int64_t t = Below(4); t > 0; --t) {
      r.tables[Text()] = {Any(kShardingNames), static_cast<int>(1 + Below(128)), Any(kTableMemoryNames)};
    }
    for (int64_t i = Below(3); i > 0; --i)
      r.gemm_by_block[Text()] = Pick({DType::kBf16, DType::kFp8E4m3, DType::kInt8});
    r.host_cache = Any(kHostCacheNames);
    r.replicas = static_cast<int>(1 + Below(64));
    r.replica_layout = Any(kReplicaLayoutNames);
    r.replica_sync_steps = 1 + Below(1000);
    r.embedding_state = Stored();
    r.dense_state = Stored();
    r.dedup = Any(kDedupNames);
    r.table_kernels = Any(kTableKernelNames);
    r.embedding_update = Any(kEmbeddingUpdateNames);
    if (Chance()) r.embedding_optimizer = Any(kEmbeddingOptimizerNames);
    if (Chance()) r.dense_optimizer = Any(kDenseOptimizerNames);
    r.embedding_forward_comm = Row();
    r.embedding_backward_comm = Row();
    r.dense_gradient_comm = Stored();
    r.dense_parallelism = Any(kDenseParallelismNames);
    r.fusion = Any(kFusionNames);
    r.launch = Any(kLaunchNames);
    r.concurrency = Any(kConcurrencyNames);
    r.node_exchange = Any(kNodeExchangeNames);
    r.pipeline = Any(kPipelineNames);
    r.gradient_overlap = Any(kGradientOverlapNames);
    r.attention = Any(kAttentionNames);
    r.grouped_products = Any(kGroupedProductNames);
    r.accumulation_steps = 1 + Below(64);
    r.gradient_clip = Any(kGradientClipNames);
    r.recompute = Pick({Recompute::kNone, Recompute::kCheap, Recompute::kAll, Recompute::kListed});
    if (r.recompute == Recompute::kListed) r.recompute_blocks = {Text(), Text()};
    for (int64_t i = Below(3); i > 0; --i) r.structure.push_back({Pick(StructureRuleNames()), 1 + Below(256)});
    r.reserve = Bytes(static_cast<double>(Below(100000000000)));
    return r;
  }

 private:
  int64_t Below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }
  bool Chance() { return Below(2) == 1; }
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return Pick(std::vector<T>(values));
  }
  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  template <typename E, size_t N>
  E Any(const NamedValue<E> (&names)[N]) {
    return names[Below(static_cast<int64_t>(N))].value;
  }
  DType Stored() { return Pick({DType::kFp32, DType::kFp16, DType::kBf16}); }
  DType Row() { return Pick({DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8E4m3, DType::kInt8}); }
  // What a name may hold and YAML would take for something else.
  std::string Text() {
    static const std::vector<std::string> kParts = {"a", "\"", "\\", ": ",   "#",    " ", "{",
                                                    "}", "'",  "%",  "null", "1e3",  "-", "\xc3\xa9",
                                                    "@", "&",  "*x", "!",    "true", "|", "cat_0"};
    std::string text = "t" + std::to_string(random_() % 100000);
    for (int64_t i = Below(5); i > 0; --i) text += Pick(kParts);
    return text + "e";
  }
  std::mt19937_64 random_;
};

TEST(WriteRecipeTest, RandomRecipes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Recipe recipe = RandomRecipe(seed).Make();
    const Recipe again = RoundTrip(recipe);
    EXPECT_EQ(again.id, recipe.id);
    EXPECT_EQ(again.description, recipe.description);
    EXPECT_EQ(again.data_parallel_max, recipe.data_parallel_max);
    EXPECT_EQ(again.tables.size(), recipe.tables.size());
    EXPECT_EQ(again.host_tables_min, recipe.host_tables_min);
    EXPECT_EQ(again.host_cache_fraction, recipe.host_cache_fraction);
    EXPECT_EQ(again.recompute_blocks, recipe.recompute_blocks);
    EXPECT_EQ(again.gemm_by_block, recipe.gemm_by_block);
    EXPECT_EQ(again.replicas, recipe.replicas);
    EXPECT_EQ(again.replica_layout, recipe.replica_layout);
    EXPECT_EQ(again.replica_sync_steps, recipe.replica_sync_steps);
    EXPECT_EQ(again.embedding_state, recipe.embedding_state);
    EXPECT_EQ(again.dense_state, recipe.dense_state);
    EXPECT_EQ(again.host_cache, recipe.host_cache);
    EXPECT_EQ(again.structure.size(), recipe.structure.size());
  }
}

// Control characters of a name cannot break the file.
TEST(WriteRecipeTest, ControlCharacters) {
  Recipe recipe = DefaultRecipe();
  recipe.description = "two\nlines\tand a \r return";
  EXPECT_EQ(RoundTrip(recipe).description, "two lines and a   return");
}

TEST(WriteRecipeTest, UnknownStructureRuleNamesFileFieldAndChoices) {
  const Result<Recipe> recipe = Read(
      "recipe: r\nlocal_batch: 1\nstructure:\n  - {rule: pad_dimensions, multiple: 8}\n  - {rule: pad_dimension}\n");
  ASSERT_FALSE(recipe);
  EXPECT_EQ(FormatError(recipe.error()),
            "r.yaml:5: structure[1].rule: must be one of pad_dimensions, merge_shared_input, jagged_packing, got "
            "'pad_dimension'; did you mean 'pad_dimensions'?");
}

TEST(WriteRecipeTest, StructureBounds) {
  for (const char* multiple : {"0", "-8", "65537", "nan", "inf", "8.5", "1e300"}) {
    const Result<Recipe> recipe = Read(
        std::string("recipe: r\nlocal_batch: 1\nstructure: [{rule: pad_dimensions, multiple: ") + multiple + "}]\n");
    ASSERT_FALSE(recipe) << multiple;
    EXPECT_EQ(recipe.error().field, "structure[0].multiple") << multiple;
  }
}

}  // namespace
}  // namespace portolan
