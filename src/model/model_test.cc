#include "model/model.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

Result<Model> Read(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "m.yaml");
  if (!value) return tl::make_unexpected(value.error());
  return ReadModel(*value);
}

// "file:line: field: message" of a file that must be refused.
std::string ErrorOf(const std::string& text) {
  const Result<Model> model = Read(text);
  return model ? "accepted" : FormatError(model.error());
}

// Lines 1 to 3; tables stand on line 4 and blocks from line 6 on.
std::string WithTable(const std::string& table) {
  return "model: m\ndense_features: 4\ntables:\n  - " + table +
         "\nblocks:\n  - {name: a, type: mlp, input: dense, widths: [8]}\n";
}
std::string WithBlocks(const std::string& blocks) {
  return "model: m\ndense_features: 4\ntables:\n  - {name: t, rows: 10, dim: 8, lookups: 2}\nblocks:\n" + blocks;
}

TEST(ModelTest, SmallestModel) {
  const Result<Model> model =
      Read("model: m\ndense_features: 4\nblocks:\n  - {name: a, type: mlp, input: dense, widths: [8]}\n");
  ASSERT_TRUE(model) << FormatError(model.error());
  EXPECT_EQ(DenseParameters(*model), 5 * 8);
  EXPECT_EQ(EmbeddingParameters(*model), 0);
  EXPECT_EQ(model->DenseElements(), 4);
}

TEST(ModelTest, CountMakesCopiesAndTablesWithLookupsAreFeatures) {
  const Result<Model> model = Read(WithTable("{name: t, count: 3, rows: 1e3, dim: 8, lookups: 2}"));
  ASSERT_TRUE(model) << FormatError(model.error());
  ASSERT_EQ(model->tables.size(), 3u);
  ASSERT_EQ(model->features.size(), 3u);
  EXPECT_EQ(model->tables[2].name, "t_2");
  EXPECT_EQ(model->features[2].table, 2);
  EXPECT_EQ(model->GroupShape(0).tokens, 3);
  EXPECT_EQ(model->GroupShape(0).width, 8);
}

TEST(ModelTest, UniqueRows) {
  Model model;
  model.tables = {{"t", 1000, 8}};
  Feature feature;
  feature.lookups = 10;
  // Uniform: 1000 (1 - (1 - 1/1000)^(100 x 10)) = 632.3.
  EXPECT_NEAR(model.UniqueRows(feature, 100), 632.3, 0.1);
  feature.unique_ratio = 0.25;
  EXPECT_DOUBLE_EQ(model.UniqueRows(feature, 100), 250);
  EXPECT_DOUBLE_EQ(model.UniqueRows(feature, 1e6), 1000);
  feature.unique_ratio.reset();
  // Whole bags repeat: 100 draws of 1000 ids are 95.2 distinct bags of 10 rows; never more than the table.
  feature.skew_of = Feature::SkewOf::kBag;
  EXPECT_NEAR(model.UniqueRows(feature, 100), 952.1, 0.5);
  EXPECT_DOUBLE_EQ(model.UniqueRows(feature, 1000), 1000);
  // Skew and a hot row leave fewer.
  feature.skew_of = Feature::SkewOf::kLookup;
  const double uniform = model.UniqueRows(feature, 100);
  feature.zipf_exponent = 1;
  const double skewed = model.UniqueRows(feature, 100);
  EXPECT_LT(skewed, uniform);
  feature.hottest_row_share = 0.5;
  EXPECT_LT(model.UniqueRows(feature, 100), skewed);
}

TEST(ModelTest, EveryBlockTypeHasItsNameShapeAndParameters) {
  const Result<Model> model = Read(
      "model: m\n"
      "dense_inputs: [{name: x, tokens: 6, width: 8}]\n"
      "blocks:\n"
      "  - {name: mlp, type: mlp, input: x, widths: [16, 8], groups: 2, layer_norm: true}\n"
      "  - {name: norm, type: norm, input: mlp}\n"
      "  - {name: add, type: add, inputs: [norm, x]}\n"
      "  - {name: chain, type: pointwise, input: add}\n"
      "  - {name: mix, type: token_linear, input: chain, out_tokens: 3}\n"
      "  - {name: join, type: concat, axis: tokens, inputs: [mix, chain]}\n"
      "  - {name: fm, type: factorization, input: join, rank: 2}\n"
      "  - {name: layers, type: transformer, input: join, layers: 2, heads: 2, head_dim: 4, feed_forward_width: 32, "
      "query_tokens: [6, 4], own_weight_tokens: 2}\n"
      "  - {name: hstu, type: hstu, input: layers, layers: 1, heads: 2, qk_dim: 4, v_dim: 8}\n"
      "  - {name: last, type: select, input: hstu, tokens: 1}\n"
      "  - {name: wide, type: concat, inputs: [last, fm]}\n"
      "  - {name: cross, type: low_rank_cross, input: wide, layers: 2}\n"
      "  - {name: two, type: reshape, input: cross, tokens: 2}\n"
      "  - {name: dot, type: dot_interaction, inputs: [two, two]}\n");
  ASSERT_TRUE(model) << FormatError(model.error());
  struct Want {
    const char* type;
    double tokens, width, parameters;
  };
  const Want wants[] = {
      {"mlp", 6, 8, 2 * (9 * 16 + 17 * 8) + 2 * 16 + 2 * 8},
      {"norm", 6, 8, 16},
      {"add", 6, 8, 0},
      {"pointwise", 6, 8, 0},
      {"token_linear", 3, 8, 6 * 3},
      {"concat", 9, 8, 0},
      {"factorization", 1, 18, 9 * 2},
      // Q, K, V 3 x 64 and feed-forward 2 x 256 = 704 in 3 sets, output 64, two norms 16.
      {"transformer", 4, 8, 2 * (3 * 704 + 64 + 16)},
      // UVQK 9 x 48, output 3 x 16 x 8, norms 16 + 32.
      {"hstu", 4, 8, 432 + 384 + 48},
      {"select", 1, 8, 0},
      {"concat", 1, 26, 0},
      {"low_rank_cross", 1, 26, 2 * (26 * 26 + 26)},  // rank 0: a full matrix
      {"reshape", 2, 13, 0},
      {"dot_interaction", 1, 13 + 4 * 3 / 2, 0},
  };
  ASSERT_EQ(model->blocks.size(), std::size(wants));
  for (size_t i = 0; i < std::size(wants); ++i) {
    SCOPED_TRACE(model->blocks[i].name);
    EXPECT_STREQ(BlockTypeName(model->blocks[i].body), wants[i].type);
    EXPECT_DOUBLE_EQ(model->blocks[i].shape.tokens, wants[i].tokens);
    EXPECT_DOUBLE_EQ(model->blocks[i].shape.width, wants[i].width);
    EXPECT_DOUBLE_EQ(BlockParameters(*model, model->blocks[i]), wants[i].parameters);
  }
}

TEST(ModelTest, RowsOutOfBounds) {
  for (const char* rows : {"0", "-5", "nan", "inf", "1e14", "1.5", "many"}) {
    const std::string error = ErrorOf(WithTable(std::string("{name: t, rows: ") + rows + ", dim: 8, lookups: 1}"));
    EXPECT_EQ(error.find("m.yaml:4: tables[0].rows: "), 0u) << error;
    EXPECT_NE(error.find(rows), std::string::npos) << error;
  }
  EXPECT_EQ(ErrorOf(WithTable("{name: t, rows: -5, dim: 8, lookups: 1}")),
            "m.yaml:4: tables[0].rows: must be between 1 and 10000000000000, got '-5'");
  EXPECT_EQ(ErrorOf(WithTable("{name: t, rows: nan, dim: 8, lookups: 1}")),
            "m.yaml:4: tables[0].rows: must be a finite number, got 'nan'");
}

struct Case {
  const char* text;
  const char* error;
};

TEST(ModelTest, TablesAndFeatures) {
  const Case cases[] = {
      {"{name: t, rows: 10, dim: 0, lookups: 1}", "m.yaml:4: tables[0].dim: must be between 1 and 65536, got '0'"},
      {"{name: t, rows: 10, dim: 8, lookup: 1}",
       "m.yaml:4: tables[0].lookup: unknown key; accepted: name, rows, dim, count, lookups; did you mean 'lookups'?"},
      {"{name: t, rows: 10, lookups: 1}", "m.yaml:4: tables[0].dim: is required but missing"},
      {"{rows: 10, dim: 8, lookups: 1}", "m.yaml:4: tables[0].name: is required but missing"},
      {"{name: t, rows: 10, dim: 8, lookups: -1}",
       "m.yaml:4: tables[0].lookups: must be between 0 and 10000000, got '-1'"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, unique_ratio: 1.5}",
       "m.yaml:4: tables[0].unique_ratio: must be between 1e-09 and 1, got '1.5'"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, zipf_exponent: 9}",
       "m.yaml:4: tables[0].zipf_exponent: must be between 0 and 4, got '9'"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, skew_of: bags}",
       "m.yaml:4: tables[0].skew_of: must be one of lookup, bag, got 'bags'; did you mean 'bag'?"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, hottest_row_share: 2}",
       "m.yaml:4: tables[0].hottest_row_share: must be between 0 and 1, got '2'"},
      {"{name: t, rows: 10, dim: 8, lookups: 1}\n  - {name: t, rows: 10, dim: 8}",
       "m.yaml:5: tables[1]: a table named 't' exists already"},
      {"{name: t, rows: 10, dim: 8, count: 10001}",
       "m.yaml:4: tables[0].count: must be between 1 and 10000, got '10001'"},
      {"{name: t, rows: 10, dim: 8, count: 6000}\n  - {name: u, rows: 10, dim: 8, count: 6000}",
       "m.yaml:5: tables[1]: at most 10000 tables are accepted"},
      {"{name: t, rows: 10, dim: 8}\nfeatures:\n  - {name: f, table: tt, lookups: 1}",
       "m.yaml:6: features[0]: table 'tt' is not in 'tables'; did you mean 't'?"},
      {"{name: t, rows: 10, dim: 8}\ngroups: [{name: g, pooling: none, tokens: 2}]",
       "m.yaml:5: groups[0]: group 'g' has no feature: give a table or feature 'group: g'"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, group: g}\ngroups: [{name: g}, {name: g}]",
       "m.yaml:5: groups[1]: a group named 'g' exists already"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, group: g}\ngroups: [{name: g, pooling: none}]",
       "m.yaml:5: groups[0].tokens: is required but missing"},
      {"{name: t, rows: 10, dim: 8, lookups: 1, group: dense}", "m.yaml:1: two inputs or groups are named 'dense'"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(WithTable(c.text)), c.error) << c.text;
}

TEST(ModelTest, Blocks) {
  const Case cases[] = {
      {"", "m.yaml:1: 'blocks' is required: the list of the model's layers"},
      {"  []\n", "m.yaml:6: blocks: at least one block is required"},
      {"  - {name: a, type: mlp, input: dense, width: [8]}\n",
       "m.yaml:6: blocks[0].width: unknown key; accepted: name, type, input, inputs, widths, activation, "
       "last_activation, groups, layer_norm; did you mean 'widths'?"},
      {"  - {name: a, type: mlp, input: dense}\n",
       "m.yaml:6: blocks[0]: 'widths' is required: the output width of each layer"},
      {"  - {name: a, type: mlp, input: dense, widths: [8, 0]}\n",
       "m.yaml:6: blocks[0].widths[1]: must be between 1 and 10000000, got '0'"},
      {"  - {name: a, type: mlp, input: dense, widths: [8.5]}\n",
       "m.yaml:6: blocks[0]: widths must be whole numbers, got 8.5"},
      {"  - {name: a, type: mlp, input: dense, widths: [8], activation: tanh}\n",
       "m.yaml:6: blocks[0].activation: must be one of none, relu, gelu, silu, sigmoid, got 'tanh'"},
      {"  - {name: a, type: mlp, input: dens, widths: [8]}\n",
       "m.yaml:6: blocks[0].input: 'dens' is not an earlier block, feature group or dense input; did you mean 'dense'? "
       "Known here: dense, embeddings"},
      {"  - {name: a, type: mlp, widths: [8]}\n",
       "m.yaml:6: blocks[0]: 'input' or 'inputs' is required; known here: dense, embeddings"},
      {"  - {name: a, type: mlp, input: b, widths: [8]}\n  - {name: b, type: norm, input: dense}\n",
       "m.yaml:6: blocks[0].input: 'b' is not an earlier block, feature group or dense input. Known here: dense, "
       "embeddings"},
      {"  - {name: a, type: norm, input: a}\n",
       "m.yaml:6: blocks[0].input: 'a' is not an earlier block, feature group or dense input. Known here: dense, "
       "embeddings"},
      {"  - {name: a, type: norm, input: dense}\n  - {name: a, type: norm, input: dense}\n",
       "m.yaml:7: blocks[1]: the name 'a' is taken already"},
      {"  - {name: embeddings, type: norm, input: dense}\n",
       "m.yaml:6: blocks[0]: the name 'embeddings' is taken already"},
      {"  - {name: a, type: norm, inputs: [dense, embeddings]}\n",
       "m.yaml:6: blocks[0]: norm takes exactly one input, got 2"},
      {"  - {name: a, type: dot_interaction, inputs: [dense, embeddings]}\n",
       "m.yaml:6: blocks[0]: dot_interaction needs vectors of one width, got [1, 4] and [1, 8]"},
      {"  - {name: a, type: dot_interaction, input: embeddings}\n",
       "m.yaml:6: blocks[0]: dot_interaction needs a dense input and at least one embedding group"},
      {"  - {name: a, type: add, inputs: [dense, embeddings]}\n",
       "m.yaml:6: blocks[0]: add needs inputs of one shape, got [1, 4] and [1, 8]"},
      {"  - {name: a, type: concat, axis: tokens, inputs: [dense, embeddings]}\n",
       "m.yaml:6: blocks[0]: inputs joined along tokens need one width, got [1, 4] and [1, 8]"},
      {"  - {name: a, type: mlp, input: embeddings, groups: 2, widths: [8]}\n",
       "m.yaml:6: blocks[0]: groups must divide the input's tokens, got groups 2 for input [1, 8]"},
      {"  - {name: a, type: reshape, input: dense, tokens: 3}\n",
       "m.yaml:6: blocks[0]: tokens must divide the input's 4 elements, got 3"},
      {"  - {name: a, type: select, input: dense, tokens: 2}\n",
       "m.yaml:6: blocks[0]: tokens must be at most the input's, got 2 for input [1, 4]"},
      {"  - {name: a, type: transformer, input: dense, layers: 2, heads: 1, head_dim: 4, query_tokens: [1]}\n",
       "m.yaml:6: blocks[0]: query_tokens and key_tokens need one number a layer (2), got 1"},
      {"  - {name: a, type: transformer, input: dense, layers: 1, heads: 1, head_dim: 4, query_tokens: [2]}\n",
       "m.yaml:6: blocks[0]: layer 0 has 1 tokens, so query_tokens and key_tokens must be at most that; got 2 and 1"},
      {"  - {name: a, type: transformer, input: dense, layers: 1, heads: 1, head_dim: 4, own_weight_tokens: 2}\n",
       "m.yaml:6: blocks[0]: own_weight_tokens must be at most the tokens of the last layer (1), got 2"},
      {"  - {name: a, type: hstu, input: dense, layers: 1, heads: 1, qk_dim: 4}\n",
       "m.yaml:6: blocks[0].v_dim: is required but missing"},
      {"  - {name: a, type: low_rank_cross, input: dense, rank: 2}\n",
       "m.yaml:6: blocks[0].layers: is required but missing"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(WithBlocks(c.text)), c.error) << c.text;
}

TEST(ModelTest, TopLevel) {
  const Case cases[] = {
      {"[1, 2]", "m.yaml:1: must be a map, got a list"},
      {"model: m\n", "m.yaml:1: 'blocks' is required: the list of the model's layers"},
      {"blocks: []\n", "m.yaml:1: model: is required but missing"},
      {"model: m\ndense_features: 4\nzipf: 1\nblocks:\n  - {name: a, type: norm, input: dense}\n",
       "m.yaml:3: zipf: unknown key; accepted: model, description, source, dense_features, dense_inputs, "
       "zipf_exponent, skew_of, groups, tables, features, blocks, training"},
      {"model: m\ndense_features: 4\ndense_inputs: [{name: dense, width: 2}]\nblocks:\n  - {name: a, type: norm, "
       "input: dense}\n",
       "m.yaml:3: dense_inputs[0]: two inputs or groups are named 'dense'"},
      {"model: m\ndense_features: 4\nblocks:\n  - {name: a, type: norm, input: dense}\ntraining: {dense_optimizer: "
       "lamb}\n",
       "m.yaml:5: training.dense_optimizer: must be one of sgd, momentum, adagrad, adam, got 'lamb'"},
      {"model: m\ndense_features: 4\nblocks:\n  - {name: a, type: norm, input: dense}\ntraining:\n  "
       "samples_to_quality: [{global_batch: 0, samples: 1}]\n",
       "m.yaml:6: training.samples_to_quality[0].global_batch: must be between 1 and 1000000000000, got '0'"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(c.text), c.error) << c.text;
}

TEST(ModelTest, AnUnknownBlockTypeNamesTheNearestOne) {
  const std::string error = ErrorOf(WithBlocks("  - {name: a, type: mlpp, input: dense, widths: [8]}\n"));
  EXPECT_EQ(error.find("m.yaml:6: blocks[0].type: must be one of mlp, concat, "), 0u) << error;
  EXPECT_NE(error.find("got 'mlpp'; did you mean 'mlp'?"), std::string::npos) << error;
}

TEST(ModelTest, DotInteractionOfMixedDimensionsIsRefused) {
  EXPECT_EQ(ErrorOf("model: m\ndense_features: 8\ntables:\n"
                    "  - {name: t, rows: 10, dim: 8, lookups: 2}\n"
                    "  - {name: u, rows: 10, dim: 16, lookups: 2}\n"
                    "blocks:\n"
                    "  - {name: a, type: dot_interaction, inputs: [dense, embeddings]}\n"),
            "m.yaml:7: blocks[0]: dot_interaction needs vectors of one width, got [1, 8] and [1, 24]");
}

TEST(ModelTest, HugeOutputIsRefused) {
  EXPECT_EQ(ErrorOf("model: m\ndense_inputs: [{name: x, tokens: 1e8, width: 1e5}]\nblocks:\n"
                    "  - {name: a, type: mlp, input: x, widths: [1e7]}\n"),
            "m.yaml:4: blocks[0]: the output of 'a' has 1e+15 elements a sample; at most 1e12 are accepted");
}

TEST(ModelTest, TooManyLayersAreRefused) {
  std::string blocks;
  for (int i = 0; i < 3; ++i) {
    blocks += "  - {name: c" + std::to_string(i) + ", type: low_rank_cross, input: dense, layers: 900}\n";
  }
  EXPECT_EQ(ErrorOf(WithBlocks(blocks)),
            "m.yaml:8: blocks[2]: at most 2000 layers in all blocks together are accepted");
}

TEST(ModelTest, MissingFile) {
  const Result<Model> model = LoadModel("data/models/no_such_model.yaml");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace portolan
