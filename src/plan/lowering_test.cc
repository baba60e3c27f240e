#include <cmath>
#include <map>

#include "plan/graph_builder.h"
#include "plan/test_inputs.h"

namespace portolan {
namespace {

Recipe LoweringRecipe(Fusion fusion) {
  Recipe recipe = DefaultRecipe();
  recipe.fusion = fusion;
  recipe.local_batch = 1000;
  return recipe;
}

StepGraph GraphOf(const Model& model, const Recipe& recipe, const std::string& on = "h100") {
  return EstimateOrFail(model, recipe, TestCluster(on)).graph;
}

bool Has(const StepGraph& graph, const std::string& name) {
  for (const Task& task : graph.tasks) {
    if (task.name == name) return true;
  }
  return false;
}

double MatrixFlops(const StepGraph& graph) {
  double flops = 0;
  for (const Task& task : graph.tasks) flops += task.matrix_flops.value;
  return flops;
}

enum class Pass { kForward, kBackward };
// Bytes of a block's pointwise kernels before or after the loss.
double PointwiseBytes(const StepGraph& graph, const std::string& block, Pass pass) {
  double bytes = 0;
  bool after_loss = false;
  for (const Task& task : graph.tasks) {
    if (task.name == "loss") after_loss = true;
    if (task.name.rfind(block + ".", 0) != 0 || after_loss != (pass == Pass::kBackward)) continue;
    bytes += task.moved.value;
  }
  return bytes;
}

// Forward, then for each layer an input gradient (not for the first, whose input is data) and a weight gradient.
TEST(LoweringTest, AnMlpChainHasThreeProductsALayer) {
  const Model model = ModelFromText(
      "model: m\ndense_features: 64\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [128, 256]}\n"
      "  - {name: b, type: mlp, input: a, widths: [64]}\n");
  for (const Fusion fusion : {Fusion::kFull, Fusion::kCompiled, Fusion::kEager}) {
    const StepGraph graph = GraphOf(model, LoweringRecipe(fusion));
    EXPECT_FALSE(Has(graph, "a.0.dgrad"));
    for (const char* name : {"a.0", "a.1", "b.0", "a.1.dgrad", "b.0.dgrad", "a.0.wgrad", "a.1.wgrad", "b.0.wgrad"}) {
      EXPECT_TRUE(Has(graph, name)) << name;
    }
    // 2 x 1000 x (64 x 128 + 128 x 256 + 256 x 64) flops forward, three times that in all but the first layer's dgrad.
    const double first = 2.0 * 1000 * 64 * 128;
    const double forward = first + 2.0 * 1000 * (128 * 256 + 256 * 64);
    EXPECT_DOUBLE_EQ(MatrixFlops(graph), 3 * forward - first);
  }
}

TEST(LoweringTest, AnMlpOverEmbeddingsIsThreeTimesForward) {
  const Model model = ModelFromText(
      "model: m\ntables:\n  - {name: t, rows: 1000, dim: 64, lookups: 3}\nblocks:\n"
      "  - {name: a, type: mlp, input: embeddings, widths: [128, 64]}\n");
  const StepGraph graph = GraphOf(model, LoweringRecipe(Fusion::kFull));
  EXPECT_DOUBLE_EQ(MatrixFlops(graph), 3 * 2.0 * 1000 * (64 * 128 + 128 * 64));
}

// 16.03 M weights: 32.06 MFLOP a sample forward, 96.2 forward and backward.
TEST(LoweringTest, Dcnv2IsNinetySixMegaflopASample) {
  const StepGraph graph = GraphOf(DataModel("mlperf_dlrm_dcnv2"), DataRecipe("hugectr_mlperf"), "8xh100");
  EXPECT_NEAR(MatrixFlops(graph) / 6912, 96.2e6, 0.1e6);
}

// Factorised and full cross layers: 2 x 2 x width x rank against 2 x width^2.
TEST(LoweringTest, CrossLayers) {
  const auto flops = [](const std::string& rank) {
    const Model model = ModelFromText(
        "model: m\ntables:\n  - {name: t, rows: 1000, dim: 64, lookups: 3}\nblocks:\n"
        "  - {name: c, type: low_rank_cross, input: embeddings, layers: 2" +
        rank + "}\n");
    return MatrixFlops(GraphOf(model, LoweringRecipe(Fusion::kFull)));
  };
  EXPECT_DOUBLE_EQ(flops(", rank: 8"), 3 * 2 * 2.0 * 2 * 1000 * 64 * 8);
  EXPECT_DOUBLE_EQ(flops(""), 3 * 2 * 2.0 * 1000 * 64 * 64);
}

// OneTrans' layer in 16-bit passes over its key rows k and query rows q (a model with one layer of all tokens has q =
// k, with own weights for the joins, an fp32 residual stream and a feed-forward four times as wide): 11 k + 21 q
// forward and 13 k + 33 q backward.
TEST(LoweringTest, TransformerPasses) {
  const auto model_of = [](int query) {
    return ModelFromText(
        "model: m\ngroups: [{name: g, pooling: none, tokens: 128}]\ntables:\n"
        "  - {name: t, rows: 1000, dim: 64, lookups: 128, group: g}\nblocks:\n"
        "  - {name: x, type: transformer, input: g, layers: 1, heads: 1, head_dim: 64, feed_forward_width: 256, "
        "own_weight_tokens: 8, query_tokens: [" +
        std::to_string(query) + "]}\n");
  };
  Recipe recipe = LoweringRecipe(Fusion::kCompiled);
  recipe.normalization = DType::kFp32;
  const double k = 1000.0 * 128 * 64 * 2;
  for (const int query : {128, 64}) {
    const double q = k * query / 128;
    const StepGraph graph = GraphOf(model_of(query), recipe);
    EXPECT_NEAR(PointwiseBytes(graph, "x", Pass::kForward), 11 * k + 21 * q, 1.0 * k) << query;
    EXPECT_NEAR(PointwiseBytes(graph, "x", Pass::kBackward), 13 * k + 33 * q, 1.0 * k) << query;
  }
}

// HSTU's layer as the public Triton kernels do it with recomputation: 12 passes forward and 26.5 backward, V as wide as
// the input.
TEST(LoweringTest, HstuPasses) {
  const Model model = ModelFromText(
      "model: m\ngroups: [{name: g, pooling: none, tokens: 128}]\ntables:\n"
      "  - {name: t, rows: 1000, dim: 64, lookups: 128, group: g}\nblocks:\n"
      "  - {name: x, type: hstu, input: g, layers: 1, heads: 1, qk_dim: 64, v_dim: 64}\n");
  Recipe recipe = LoweringRecipe(Fusion::kCompiled);
  recipe.recompute = Recompute::kCheap;
  const double n = 1000.0 * 128 * 64 * 2;
  const StepGraph graph = GraphOf(model, recipe);
  EXPECT_NEAR(PointwiseBytes(graph, "x", Pass::kForward), 12 * n, 0.5 * n);
  EXPECT_NEAR(PointwiseBytes(graph, "x", Pass::kBackward), 26.5 * n, 0.5 * n);
  // UVQK four times (forward, again, two gradients), output three times: 2 x tokens x (4 x 64 x 256 + 3 x 192 x 64).
  EXPECT_DOUBLE_EQ(MatrixFlops(graph), 2.0 * 128000 * (4 * 64 * 256 + 3 * 192 * 64));
  // Without recomputation one UVQK product less.
  recipe.recompute = Recompute::kNone;
  EXPECT_DOUBLE_EQ(MatrixFlops(GraphOf(model, recipe)), 2.0 * 128000 * (3 * 64 * 256 + 3 * 192 * 64));
}

// DLRMv4 executes 119 TFLOP of products a GPU and step at 2,640 tokens (68 UVQK + 38 output + 12.9 MLPs), by its
// source.
TEST(LoweringTest, Dlrmv4Flops) {
  const StepGraph graph = GraphOf(DataModel("mlperf_dlrmv4_hstu"), DataRecipe("dlrmv4_mlperf"), "8xmi350x");
  EXPECT_NEAR(MatrixFlops(graph), 119e12, 0.05 * 119e12);
}

// 72.4 TFLOP in shared-weight products and 1.3 in own-weight ones (AMD-AGI/Primus-DLRM, doc/perf_analysis.md).
TEST(LoweringTest, OneTransFlops) {
  const StepGraph graph = GraphOf(DataModel("onetrans_large"), DataRecipe("onetrans_primus"), "8xb200");
  EXPECT_NEAR(MatrixFlops(graph), 73.7e12, 0.05 * 73.7e12);
}

TEST(LoweringTest, FusionRemovesKernelsAndBytes) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  Recipe recipe = DataRecipe("hugectr_mlperf");
  size_t last_tasks = 0;
  double last_bytes = 0;
  for (const Fusion fusion : {Fusion::kFull, Fusion::kCompiled, Fusion::kEager}) {
    recipe.fusion = fusion;
    const StepGraph graph = GraphOf(model, recipe, "8xh100");
    double bytes = 0;
    for (const Task& task : graph.tasks) bytes += task.moved.value;
    EXPECT_GT(graph.tasks.size(), last_tasks);
    EXPECT_GT(bytes, last_bytes);
    last_tasks = graph.tasks.size();
    last_bytes = bytes;
  }
}

// Any recipe that a reader accepts can be priced, whatever the batch.
TEST(LoweringTest, AnAbsurdBatchIsStillAnAnswer) {
  Recipe recipe = LoweringRecipe(Fusion::kCompiled);
  recipe.local_batch = 1000000000000;
  const StepEstimate estimate = EstimateOrFail(DataModel("mlperf_dlrmv4_hstu"), recipe, TestCluster("8xh100"));
  EXPECT_TRUE(std::isfinite(estimate.step.value));
  EXPECT_GT(estimate.step, Seconds(1e3));
}

// Only the named block's products are priced in its format, forward and backward; all blocks named are the whole model.
TEST(LoweringTest, FormatsOfSingleBlocks) {
  const Model model = ModelFromText(
      "model: m\ndense_features: 4096\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [4096, 4096]}\n"
      "  - {name: b, type: mlp, input: a, widths: [4096]}\n");
  Recipe recipe = LoweringRecipe(Fusion::kFull);
  recipe.local_batch = 8192;
  const auto totals = [&] {
    std::map<std::string, double> total;
    for (const Task& task : GraphOf(model, recipe).tasks) {
      if (task.category == Category::kGemm) total[task.name] = task.estimate.total.value;
    }
    return total;
  };
  const auto wide = totals();
  recipe.gemm_by_block = {{"b", DType::kFp8E4m3}};
  const auto mixed = totals();
  recipe.gemm_by_block["a"] = DType::kFp8E4m3;
  const auto both = totals();
  recipe.gemm_by_block.clear();
  recipe.gemm = DType::kFp8E4m3;
  const auto narrow = totals();
  for (const char* name : {"a.0", "a.1", "a.1.dgrad", "a.0.wgrad", "a.1.wgrad"}) {
    EXPECT_EQ(mixed.at(name), wide.at(name)) << name;
    EXPECT_NE(narrow.at(name), wide.at(name)) << name;
  }
  for (const char* name : {"b.0", "b.0.dgrad", "b.0.wgrad"}) EXPECT_EQ(mixed.at(name), narrow.at(name)) << name;
  EXPECT_EQ(both, narrow);
}

TEST(LoweringTest, UnknownBlocksAreNamed) {
  Recipe recipe = LoweringRecipe(Fusion::kFull);
  recipe.gemm_by_block["bottm"] = DType::kFp8E4m3;
  const Result<StepEstimate> estimate = EstimateStep(DataModel("rm2"), recipe, TestCluster("h100"));
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().message,
            "recipe 'default': precision.gemm_by_block: model 'rm2' has no block 'bottm'; did you mean 'bottom'?");
}

}  // namespace
}  // namespace portolan
