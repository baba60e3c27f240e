#include "plan/dividend.h"

#include "plan/test_inputs.h"

namespace portolan {
namespace {

const Dividend* Find(const std::vector<Dividend>& dividends, const std::string& dimension) {
  for (const Dividend& dividend : dividends) {
    if (dividend.dimension == dimension) return &dividend;
  }
  return nullptr;
}

// `recipe` on both clusters, with the tables where its estimates have them.
std::vector<Dividend> DividendsOf(const Model& model, const Recipe& recipe, const Cluster& from, Seconds from_budget,
                                  const Cluster& to, Seconds to_budget) {
  const Placement there = EstimateOrFail(model, recipe, from).placement;
  const Placement here = EstimateOrFail(model, recipe, to).placement;
  return CapacityDividends(model, {from, recipe, there, from_budget}, {to, recipe, here, to_budget});
}

// One table split by row over 8 devices, SGD (no state) and next to nothing else. Rows grow until memory ends:
// factor = (capacity - the rest) / bytes of rows, to the bisection's 1 %.
TEST(DividendTest, RowsFillTheMemory) {
  const Model model = ModelFromText(
      "model: m\ndense_features: 8\ntables:\n  - {name: t, rows: 1e9, dim: 64, lookups: 1}\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [64]}\ntraining: {embedding_optimizer: sgd}\n");
  Recipe recipe = DefaultRecipe();
  recipe.sharding = Sharding::kRow;
  const Cluster h100 = TestCluster("8xh100"), mi350x = TestCluster("8xmi350x");
  const std::vector<Dividend> dividends = DividendsOf(model, recipe, h100, Seconds(1), mi350x, Seconds(1));
  const Dividend* rows = Find(dividends, "table rows");
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->limit, "memory");
  // 1e9 x 64 x 4 B / 8 = 32 GB a device.
  const auto expected = [&](const Cluster& cluster) {
    const MemoryEstimate memory = EstimateOrFail(model, recipe, cluster).memory;
    EXPECT_NEAR(memory.tables.value, 32e9, 1e6);
    return (memory.capacity - (memory.total - memory.tables)) / memory.tables;
  };
  EXPECT_NEAR(rows->factor, expected(mi350x), 0.011 * rows->factor);
  EXPECT_NEAR(rows->factor_from, expected(h100), 0.011 * rows->factor_from);
  EXPECT_EQ(Find(dividends, "sequence length"), nullptr) << "the model has none";
}

// 4e9 x 64 fp16 values are 64 GB a device of eight: 288 GB hold them in fp32, 80 GB do not.
TEST(DividendTest, RowsUncompressIntoTheLargerMemory) {
  const Model model = ModelFromText(
      "model: m\ndense_features: 8\ntables:\n  - {name: t, rows: 4e9, dim: 64, lookups: 1}\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [64]}\ntraining: {embedding_optimizer: sgd}\n");
  Recipe recipe = DefaultRecipe();
  recipe.sharding = Sharding::kRow;
  recipe.embedding_row = DType::kFp16;
  const Cluster h100 = TestCluster("8xh100"), mi350x = TestCluster("8xmi350x");
  const std::vector<Dividend> dividends = DividendsOf(model, recipe, h100, Seconds(1), mi350x, Seconds(1));
  const Dividend* rows = Find(dividends, "bytes of a row value");
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->factor, 2);
  EXPECT_EQ(rows->factor_from, 1);
  EXPECT_EQ(rows->limit, "fp32 is the widest format");
  const std::vector<Dividend> back = DividendsOf(model, recipe, mi350x, Seconds(1), h100, Seconds(1));
  EXPECT_EQ(Find(back, "bytes of a row value")->limit, "memory");
  recipe.embedding_row = DType::kFp32;
  EXPECT_EQ(Find(DividendsOf(ModelFromText("model: s\ndense_features: 8\ntables:\n  - {name: t, rows: 1e6, dim: 64, "
                                           "lookups: 1}\nblocks:\n  - {name: a, type: mlp, input: dense, widths: "
                                           "[64]}\n"),
                             recipe, h100, Seconds(1), mi350x, Seconds(1)),
                 "bytes of a row value"),
            nullptr)
      << "fp32 already";
}

TEST(DividendTest, TimeStopsASequence) {
  const Model model = DataModel("mlperf_dlrmv4_hstu");
  const Recipe recipe = DataRecipe("dlrmv4_mlperf");
  const Cluster cluster = TestCluster("8xmi350x");
  const Seconds step = EstimateOrFail(model, recipe, cluster).step;
  const std::vector<Dividend> dividends = DividendsOf(model, recipe, cluster, step, cluster, 1.2 * step);
  const Dividend* sequence = Find(dividends, "sequence length");
  ASSERT_NE(sequence, nullptr);
  EXPECT_EQ(sequence->limit, "time");
  // Attention grows with the square, the rest in proportion: 20 % more time is 10 to 20 % more tokens.
  EXPECT_GT(sequence->factor, 1.09);
  EXPECT_LT(sequence->factor, 1.21);
  EXPECT_EQ(Find(dividends, "embedding dimension"), nullptr) << "HSTU's width is its embeddings'";
}

// A bigger budget or a bigger memory never makes a factor smaller; none is below one.
TEST(DividendTest, MonotoneInTheBudget) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  const Recipe recipe = DataRecipe("hugectr_mlperf");
  const Cluster cluster = TestCluster("8xmi350x");
  const Seconds step = EstimateOrFail(model, recipe, cluster).step;
  std::vector<Dividend> last;
  for (const double budget : {0.5, 1.0, 1.5, 3.0}) {
    const std::vector<Dividend> now = DividendsOf(model, recipe, cluster, step, cluster, budget * step);
    for (const Dividend& dividend : now) EXPECT_GE(dividend.factor, 1);
    for (const Dividend& before : last) {
      const Dividend* after = Find(now, before.dimension);
      ASSERT_NE(after, nullptr);
      EXPECT_GE(after->factor, before.factor);
    }
    last = now;
  }
}

}  // namespace
}  // namespace portolan
