#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "model/model.h"

namespace portolan {
namespace {

Model Load(const std::string& id) {
  const Result<Model> model = LoadModel("data/models/" + id + ".yaml");
  if (!model) {
    ADD_FAILURE() << FormatError(model.error());
    return {};
  }
  return *model;
}

TensorShape ShapeOf(const Model& model, const std::string& block) {
  for (const Block& b : model.blocks) {
    if (b.name == block) return b.shape;
  }
  ADD_FAILURE() << model.id << " has no block " << block;
  return {};
}

double ParametersOf(const Model& model, const std::string& block) {
  for (const Block& b : model.blocks) {
    if (b.name == block) return BlockParameters(model, b);
  }
  ADD_FAILURE() << model.id << " has no block " << block;
  return 0;
}

double TotalLookups(const Model& model) {
  double sum = 0;
  for (const Feature& feature : model.features) sum += feature.lookups;
  return sum;
}

void ExpectShape(const TensorShape& shape, double tokens, double width) {
  EXPECT_DOUBLE_EQ(shape.tokens, tokens);
  EXPECT_DOUBLE_EQ(shape.width, width);
}

TEST(ModelDataTest, EveryFileLoadsAndIsComplete) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("data/models")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Result<Model> model = LoadModel(entry.path().string());
    ASSERT_TRUE(model) << FormatError(model.error());
    ++count;
    EXPECT_EQ(model->id, entry.path().stem().string());
    EXPECT_FALSE(model->description.empty());
    EXPECT_FALSE(model->source.empty());
    EXPECT_GT(DenseParameters(*model), 0);
    EXPECT_GT(EmbeddingParameters(*model), 0);
    for (const Block& block : model->blocks) EXPECT_GT(block.shape.elements(), 0) << block.name;
    for (const Feature& feature : model->features) {
      for (const double samples : {1.0, 1e3, 1e6}) {
        const double unique = model->UniqueRows(feature, samples);
        EXPECT_LE(unique, model->tables[static_cast<size_t>(feature.table)].rows) << feature.name;
        EXPECT_LE(unique, samples * feature.lookups * (1 + 1e-12)) << feature.name;
      }
    }
  }
  EXPECT_GE(count, 10);
}

TEST(ModelDataTest, Dcnv2) {
  const Model model = Load("mlperf_dlrm_dcnv2");
  // Weights: bottom 13x512 + 512x256 + 256x128 = 170,496; cross 3 x 2 x 3456 x 512 = 10,616,832; top 3456x1024 +
  // 1024x1024 + 1024x512 + 512x256 + 256 = 5,243,136: 16.03 M together. Biases: 896 + 3 x 3456 + 2817 = 14,081.
  EXPECT_EQ(ParametersOf(model, "bottom"), 170496 + 896);
  EXPECT_EQ(ParametersOf(model, "cross"), 10616832 + 10368);
  EXPECT_EQ(ParametersOf(model, "top"), 5243136 + 2817);
  EXPECT_EQ(DenseParameters(model), 16030464 + 14081);
  // Rows: 5 x 40 M and 21 small tables, 204,184,588 together; x 128 x 4 bytes = 104.5 GB.
  EXPECT_EQ(EmbeddingParameters(model), 204184588.0 * 128);
  EXPECT_NEAR(EmbeddingParameters(model) * 4, 104.5e9, 0.1e9);
  EXPECT_EQ(model.tables.size(), 26u);
  EXPECT_EQ(TotalLookups(model), 214);
  ExpectShape(model.GroupShape(0), 26, 128);
  ExpectShape(ShapeOf(model, "bottom"), 1, 128);
  ExpectShape(ShapeOf(model, "features"), 1, 3456);  // 27 x 128
  ExpectShape(ShapeOf(model, "cross"), 1, 3456);
  ExpectShape(ShapeOf(model, "top"), 1, 1);
  EXPECT_EQ(model.dense_optimizer, DenseOptimizer::kAdagrad);
  EXPECT_EQ(model.embedding_optimizer, EmbeddingOptimizer::kAdagrad);
  EXPECT_EQ(model.features[20].skew_of, Feature::SkewOf::kBag);
}

TEST(ModelDataTest, DlrmWithDotInteraction) {
  const Model model = Load("mlperf_dlrm_dot");
  ExpectShape(ShapeOf(model, "interaction"), 1, 128 + 27 * 26 / 2 + 1);  // 479, padded to 480
  // Top: 481x1024 + 1025x1024 + 1025x512 + 513x256 + 257, weights and biases.
  EXPECT_EQ(ParametersOf(model, "top"), 492544 + 1049600 + 524800 + 131328 + 257);
  EXPECT_NEAR(EmbeddingParameters(model) * 4, 96e9, 0.2e9);
  EXPECT_EQ(TotalLookups(model), 26);
}

TEST(ModelDataTest, Dlrmv4) {
  const Model model = Load("mlperf_dlrmv4_hstu");
  // 9,390,624 + 1,293,395 + 3,367,692 + 1,000,001 + 278 M hashed rows = 293,051,712, x 512: 150.0 B, 600 GB of fp32.
  EXPECT_EQ(EmbeddingParameters(model), 293051712.0 * 512);
  EXPECT_NEAR(EmbeddingParameters(model), 150.0e9, 0.1e9);
  EXPECT_NEAR(EmbeddingParameters(model) * 4, 600e9, 0.5e9);
  ExpectShape(ShapeOf(model, "content"), 2637, 512);
  ExpectShape(ShapeOf(model, "attributes"), 2637, 512);  // the block's input is [2637, artist 512 + album 512]
  ExpectShape(ShapeOf(model, "tokens"), 2645, 512);      // 8 of context before
  ExpectShape(ShapeOf(model, "hstu"), 2645, 512);
  ExpectShape(ShapeOf(model, "head"), 1, 1);
  // A layer: UVQK (512 + 1) x 2048, output 3 x 512 x 512, two norms 2 x 512 + 2 x 512.
  EXPECT_EQ(ParametersOf(model, "hstu"), 3 * (513 * 2048 + 1536 * 512 + 2048));
}

TEST(ModelDataTest, OneTransLarge) {
  const Model model = Load("onetrans_large");
  // A layer: 17 sets of weights (16 own, 1 shared) of 3 x 384 x 384 + 2 x 384 x 1536 = 1,622,016; output 384 x 384;
  // two norms.
  EXPECT_EQ(ParametersOf(model, "blocks"), 8 * (17 * 1622016.0 + 147456 + 768));
  EXPECT_EQ(ParametersOf(model, "ns_tokenizer"), 397 * 6144 + 6145 * 6144);
  // 267.6 M by the published gradient buckets; the spec leaves out position embeddings and per-pool tokenizers.
  EXPECT_NEAR(DenseParameters(model), 267.6e6, 0.015 * 267.6e6);
  EXPECT_EQ(EmbeddingParameters(model), 15051712.0 * 64);
  ExpectShape(model.GroupShape(0), 1500, 192);
  ExpectShape(ShapeOf(model, "others"), 1, 396);
  ExpectShape(ShapeOf(model, "ns_tokens"), 16, 384);
  ExpectShape(ShapeOf(model, "tokens"), 1516, 384);
  ExpectShape(ShapeOf(model, "blocks"), 32, 384);
  ExpectShape(ShapeOf(model, "flat"), 1, 6144);
  EXPECT_EQ(TotalLookups(model), 4504);  // 9 x 500 + 4
}

TEST(ModelDataTest, DeepRecSysModels) {
  // RM1: 129x64 + 65x32; 32 + 8 x 32 = 288 wide: 289x256 + 257x64 + 65.
  const Model rm1 = Load("rm1");
  EXPECT_EQ(DenseParameters(rm1), 8256 + 2080 + 73984 + 16448 + 65);
  EXPECT_EQ(EmbeddingParameters(rm1), 8 * 4e6 * 32);
  EXPECT_EQ(TotalLookups(rm1), 8 * 80);
  EXPECT_EQ(rm1.tables[7].name, "table_7");
  // RM2: 257x128 + 129x64; 64 + 32 x 64 = 2112 wide: 2113x128 + 129x64 + 65.
  const Model rm2 = Load("rm2");
  EXPECT_EQ(DenseParameters(rm2), 32896 + 8256 + 270464 + 8256 + 65);
  EXPECT_EQ(EmbeddingParameters(rm2), 32 * 5e5 * 64);
  EXPECT_EQ(TotalLookups(rm2), 32 * 120);
  // RM3: 2561x1024 + 1025x256 + 257x32; 32 + 10 x 32 = 352 wide: 353x512 + 513x256 + 257.
  const Model rm3 = Load("rm3");
  EXPECT_EQ(DenseParameters(rm3), 2622464 + 262400 + 8224 + 180736 + 131328 + 257);
  EXPECT_EQ(EmbeddingParameters(rm3), 10 * 2e6 * 32);
  EXPECT_EQ(TotalLookups(rm3), 10 * 20);
}

TEST(ModelDataTest, Production66) {
  const Model model = Load("production_66");
  EXPECT_EQ(model.tables.size(), 66u);
  EXPECT_EQ(TotalLookups(model), 1015);
  EXPECT_NEAR(EmbeddingParameters(model) * 4, 75.3e9, 0.1e9);
  // Dimensions differ: the group is one vector of their sum.
  double width = 0;
  for (const Table& table : model.tables) width += static_cast<double>(table.dim);
  ExpectShape(model.GroupShape(0), 1, width);
}

}  // namespace
}  // namespace portolan
