#include "kernels/embedding/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/backend_under_test.h"
#include "kernels/number_formats.h"

namespace portolan::kernels {
namespace {

// Tables, bags and outputs that own their memory.
struct Fixture {
  std::vector<std::vector<char>> rows;
  std::vector<std::vector<float>> state;
  std::vector<EmbeddingTable> tables;
  std::vector<EmbeddingFeature> features;
  std::vector<std::vector<float>> outputs;
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> ids;
  std::vector<float> weights;
  int64_t batch = 0;

  void AddTable(int64_t row_count, int32_t dim, RowFormat format, RowOptimizer optimizer, std::mt19937* random) {
    rows.emplace_back(static_cast<size_t>(row_count * RowBytes(format, dim) + 8));
    state.emplace_back(static_cast<size_t>(row_count * RowStateFloats(optimizer, dim)));
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> row(static_cast<size_t>(dim));
    for (int64_t r = 0; r < row_count; ++r) {
      for (float& x : row) x = value(*random);
      StoreRow(row.data(), dim, format, rows.back().data() + r * RowBytes(format, dim));
    }
    tables.push_back({nullptr, nullptr, row_count, dim, format});
  }
  void AddFeature(int32_t table, BagPooling pooling, int64_t max_lookups, std::mt19937* random) {
    std::uniform_int_distribution<int64_t> length(0, max_lookups), id(0, tables[table].row_count - 1);
    const int64_t first = offsets.back();
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t count = length(*random);
      for (int64_t i = 0; i < count; ++i) ids.push_back(id(*random));
      offsets.push_back(static_cast<int64_t>(ids.size()));
    }
    const int64_t results = pooling == BagPooling::kNone ? offsets.back() - first : batch;
    // A stride beyond the dimension: what lies between two outputs must stay.
    const int64_t stride = tables[table].dim + 3;
    outputs.emplace_back(static_cast<size_t>(results * stride), 7.0f);
    features.push_back({table, pooling, nullptr, stride});
  }
  void FillOutputs(std::mt19937* random) {
    std::uniform_real_distribution<float> value(-1, 1);
    for (auto& output : outputs) {
      for (float& x : output) x = value(*random);
    }
  }
  EmbeddingBags Bags() {
    for (size_t t = 0; t < tables.size(); ++t) {
      tables[t].rows = rows[t].data();
      tables[t].state = state[t].data();
    }
    for (size_t f = 0; f < features.size(); ++f) features[f].output = outputs[f].data();
    return {tables.data(),   static_cast<int32_t>(tables.size()),
            features.data(), static_cast<int32_t>(features.size()),
            batch,           offsets.data(),
            ids.data(),      weights.empty() ? nullptr : weights.data()};
  }
  std::vector<double> Workspace() {
    const int64_t bytes = EmbeddingBackwardWorkspaceBytes(Bags(), static_cast<int64_t>(ids.size()));
    return std::vector<double>(static_cast<size_t>(bytes / 8 + 8));
  }
};

Fixture Mixed(RowFormat format, RowOptimizer optimizer, int64_t batch, bool weighted) {
  std::mt19937 random(7);
  Fixture fixture;
  fixture.batch = batch;
  fixture.AddTable(11, 4, format, optimizer, &random);
  fixture.AddTable(1, 17, format, optimizer, &random);  // one row, hot
  fixture.AddTable(300, 64, format, optimizer, &random);
  fixture.AddFeature(0, BagPooling::kSum, 3, &random);
  fixture.AddFeature(1, BagPooling::kMean, 40, &random);
  fixture.AddFeature(2, BagPooling::kSum, 5, &random);
  fixture.AddFeature(0, BagPooling::kMean, 4, &random);  // a second feature of table 0
  fixture.AddFeature(2, BagPooling::kNone, 2, &random);
  if (weighted) {
    std::uniform_real_distribution<float> weight(0.5f, 2);
    for (size_t i = 0; i < fixture.ids.size(); ++i) fixture.weights.push_back(weight(random));
  }
  return fixture;
}

constexpr RowFormat kFormats[] = {RowFormat::kFp32, RowFormat::kFp16, RowFormat::kBf16, RowFormat::kInt8};
constexpr RowOptimizer kOptimizers[] = {RowOptimizer::kSgd, RowOptimizer::kAdagrad, RowOptimizer::kRowwiseAdagrad,
                                        RowOptimizer::kAdam, RowOptimizer::kRowwiseAdam};

TEST(EmbeddingReference, PoolsByHand) {
  Fixture fixture;
  std::mt19937 random(1);
  fixture.batch = 2;
  fixture.AddTable(3, 2, RowFormat::kFp32, RowOptimizer::kSgd, &random);
  const float rows[] = {1, 2, 10, 20, 100, 200};
  std::memcpy(fixture.rows[0].data(), rows, sizeof rows);
  fixture.ids = {0, 2, 1, 0, 2};
  fixture.weights = {1, 0.5f, 3, 2, 2};
  fixture.offsets = {0, 2, 3, 3, 5};  // feature 0: {0, 2}, {1}; feature 1: {}, {0, 2}
  fixture.outputs = {std::vector<float>(4), std::vector<float>(4, 9)};
  fixture.features = {{0, BagPooling::kSum, nullptr, 2}, {0, BagPooling::kMean, nullptr, 2}};
  reference::EmbeddingForward(fixture.Bags());
  // 1 * (1, 2) + 0.5 * (100, 200); 3 * (10, 20); empty; (2 * (1, 2) + 2 * (100, 200)) / 2
  EXPECT_EQ(fixture.outputs[0], (std::vector<float>{51, 102, 30, 60}));
  EXPECT_EQ(fixture.outputs[1], (std::vector<float>{0, 0, 101, 202}));
}

TEST(EmbeddingReference, DuplicatesMakeOneStep) {
  Fixture fixture;
  std::mt19937 random(1);
  fixture.batch = 2;
  fixture.AddTable(2, 2, RowFormat::kFp32, RowOptimizer::kRowwiseAdagrad, &random);
  const float rows[] = {1, 1, 5, 5};
  std::memcpy(fixture.rows[0].data(), rows, sizeof rows);
  fixture.ids = {0, 0, 0};
  fixture.offsets = {0, 2, 3};
  fixture.outputs = {{1, 0, 1, 2}};  // gradients of the two bags
  fixture.features = {{0, BagPooling::kSum, nullptr, 2}};
  RowUpdate update;
  update.optimizer = RowOptimizer::kRowwiseAdagrad;
  update.learning_rate = 0.5f;
  update.epsilon = 0;
  auto workspace = fixture.Workspace();
  reference::EmbeddingBackward(fixture.Bags(), update, workspace.data());
  // G = 2 (1, 0) + (1, 2) = (3, 2); s = (9 + 4) / 2 = 6.5; w = 1 - 0.5 G / sqrt(6.5)
  EXPECT_FLOAT_EQ(fixture.state[0][0], 6.5f);
  float after[4];
  std::memcpy(after, fixture.rows[0].data(), sizeof after);
  EXPECT_FLOAT_EQ(after[0], 1 - 1.5f / std::sqrt(6.5f));
  EXPECT_FLOAT_EQ(after[1], 1 - 1.0f / std::sqrt(6.5f));
  EXPECT_EQ(after[2], 5);  // not looked up
}

TEST(Embedding, ForwardAgreesWithReference) {
  for (const RowFormat format : kFormats) {
    for (const int64_t batch : {1, 33, 700}) {
      for (const bool weighted : {false, true}) {
        Fixture expected = Mixed(format, RowOptimizer::kSgd, batch, weighted);
        Fixture actual = Mixed(format, RowOptimizer::kSgd, batch, weighted);
        reference::EmbeddingForward(expected.Bags());
        backend::EmbeddingForward(actual.Bags());
        for (size_t f = 0; f < expected.outputs.size(); ++f) {
          for (size_t i = 0; i < expected.outputs[f].size(); ++i) {
            ASSERT_NEAR(actual.outputs[f][i], expected.outputs[f][i], 2e-5)
                << "format " << static_cast<int>(format) << " batch " << batch << " feature " << f << " at " << i;
          }
        }
      }
    }
  }
}

// Tolerance: fp32 sums of up to 20 * 150 gradients against sums in double; 16- and 8-bit rows may round to the other
// neighbour where the fp32 values differ in the last bit.
TEST(Embedding, BackwardAgreesWithReference) {
  for (const RowFormat format : kFormats) {
    for (const RowOptimizer optimizer : kOptimizers) {
      for (const int64_t batch : {1, 150}) {
        Fixture expected = Mixed(format, optimizer, batch, batch > 1),
                actual = Mixed(format, optimizer, batch, batch > 1);
        RowUpdate update;
        update.optimizer = optimizer;
        update.learning_rate = 0.01f;
        update.gradient_scale = 0.5f;
        for (int64_t step = 1; step <= 2; ++step) {
          std::mt19937 random(static_cast<unsigned>(step));
          expected.FillOutputs(&random);
          actual.outputs = expected.outputs;
          update.step = step;
          update.seed = static_cast<uint64_t>(step);
          auto workspace = actual.Workspace();
          reference::EmbeddingBackward(expected.Bags(), update, workspace.data());
          backend::EmbeddingBackward(actual.Bags(), update, workspace.data());
        }
        const float ulp = format == RowFormat::kFp32   ? 2e-5f
                          : format == RowFormat::kFp16 ? 1.1e-3f
                          : format == RowFormat::kBf16 ? 8e-3f
                                                       : 2e-2f;
        for (size_t t = 0; t < expected.tables.size(); ++t) {
          const int32_t dim = expected.tables[t].dim;
          std::vector<float> want(static_cast<size_t>(dim)), got(static_cast<size_t>(dim));
          for (int64_t r = 0; r < expected.tables[t].row_count; ++r) {
            LoadRow(expected.rows[t].data() + r * RowBytes(format, dim), format, dim, want.data());
            LoadRow(actual.rows[t].data() + r * RowBytes(format, dim), format, dim, got.data());
            for (int32_t d = 0; d < dim; ++d) {
              ASSERT_NEAR(got[d], want[d], ulp * std::max(1.0f, std::abs(want[d])))
                  << "format " << static_cast<int>(format) << " optimizer " << static_cast<int>(optimizer) << " table "
                  << t << " row " << r << " column " << d;
            }
          }
          for (size_t i = 0; i < expected.state[t].size(); ++i) {
            ASSERT_NEAR(actual.state[t][i], expected.state[t][i],
                        1e-3f * std::max(1.0f, std::abs(expected.state[t][i])));
          }
        }
      }
    }
  }
}

TEST(Embedding, NormAgreesWithReference) {
  Fixture fixture = Mixed(RowFormat::kFp32, RowOptimizer::kSgd, 500, true);
  auto workspace = fixture.Workspace();
  const double expected = reference::EmbeddingGradientSquaredNorm(fixture.Bags(), workspace.data());
  EXPECT_GT(expected, 1);
  EXPECT_NEAR(backend::EmbeddingGradientSquaredNorm(fixture.Bags(), workspace.data()) / expected, 1, 1e-4);
}

TEST(Embedding, WeightGradientAgreesWithReference) {
  for (const RowFormat format : kFormats) {
    Fixture fixture = Mixed(format, RowOptimizer::kSgd, 40, true);
    std::vector<float> expected(fixture.ids.size()), actual(fixture.ids.size());
    reference::EmbeddingWeightGradient(fixture.Bags(), expected.data());
    backend::EmbeddingWeightGradient(fixture.Bags(), actual.data());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-3) << i;
  }
}

TEST(Embedding, EmptyBatchOfLookupsChangesNothing) {
  Fixture fixture;
  std::mt19937 random(3);
  fixture.batch = 5;
  fixture.AddTable(4, 8, RowFormat::kFp32, RowOptimizer::kAdagrad, &random);
  fixture.AddFeature(0, BagPooling::kMean, 0, &random);
  const auto before = fixture.rows[0];
  backend::EmbeddingForward(fixture.Bags());
  for (int64_t b = 0; b < 5; ++b) EXPECT_EQ(fixture.outputs[0][b * 11], 0);
  auto workspace = fixture.Workspace();
  backend::EmbeddingBackward(fixture.Bags(), {}, workspace.data());
  EXPECT_EQ(fixture.rows[0], before);
}

// One table of one row, updated by a step much smaller than the format's spacing: rounding to nearest would never move
// it, stochastic rounding moves it by the step on average, and differently for another seed.
TEST(Embedding, StochasticRoundingIsUnbiasedAndSeeded) {
  for (const RowFormat format : {RowFormat::kFp16, RowFormat::kBf16, RowFormat::kInt8}) {
    constexpr int32_t kDim = 64;
    constexpr int kTrials = 200;
    const float step = format == RowFormat::kBf16 ? 1e-3f : 1e-4f;  // spacings near 1.5: 2^-7; 2^-10; 2 / 255
    double moved = 0;
    std::vector<std::vector<char>> results;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::mt19937 random(1);
      Fixture fixture;
      fixture.batch = 1;
      fixture.AddTable(1, kDim, format, RowOptimizer::kSgd, &random);
      std::vector<float> row(kDim, 1.5f);
      row[0] = 0.5f;  // an int8 row needs a range: 0.5 to 2.5
      row[1] = 2.5f;
      StoreRow(row.data(), kDim, format, fixture.rows[0].data());
      std::vector<float> before(kDim), after(kDim);
      LoadRow(fixture.rows[0].data(), format, kDim, before.data());
      fixture.ids = {0};
      fixture.offsets = {0, 1};
      fixture.outputs = {std::vector<float>(kDim, -step)};
      fixture.outputs[0][0] = fixture.outputs[0][1] = 0;
      fixture.features = {{0, BagPooling::kSum, nullptr, kDim}};
      RowUpdate update;
      update.learning_rate = 1;
      update.seed = static_cast<uint64_t>(trial);
      auto workspace = fixture.Workspace();
      backend::EmbeddingBackward(fixture.Bags(), update, workspace.data());
      LoadRow(fixture.rows[0].data(), format, kDim, after.data());
      for (int32_t d = 2; d < kDim; ++d) moved += static_cast<double>(after[d]) - before[d];
      results.push_back(fixture.rows[0]);
    }
    // Mean of 200 * 62 draws of {0, spacing}: standard error sqrt(step * spacing / 12400), below 0.08 step.
    EXPECT_NEAR(moved / (kTrials * (kDim - 2)) / step, 1, 0.25) << static_cast<int>(format);
    EXPECT_NE(results[0], results[1]) << static_cast<int>(format);
  }
}

TEST(NumberFormats, RoundTripsAndNeighbours) {
  for (uint32_t half = 0; half < 0x7c00u; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    ASSERT_EQ(FloatToHalf(value), half);
    ASSERT_EQ(FloatToHalf(-value), half | 0x8000u);
    ASSERT_EQ(FloatToHalfStochastic(value, 0xffffffffu), half);  // exact values never move
    ASSERT_EQ(FloatToHalfStochastic(value, 0), half);
  }
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);                      // halfway to 65536: to even, which is infinity
  EXPECT_EQ(FloatToHalf(1.0f + std::ldexp(1.0f, -11)), 0x3c00);  // tie to even
  EXPECT_EQ(FloatToHalf(1.0f + 3 * std::ldexp(1.0f, -11)), 0x3c02);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(NAN))));
  EXPECT_TRUE(std::isinf(HalfToFloat(FloatToHalf(INFINITY))));
  EXPECT_EQ(FloatToHalfStochastic(1e9f, 0), 0x7bff);  // saturates
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalfStochastic(NAN, 1))));
  EXPECT_EQ(FloatToBf16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBf16(1.0f + std::ldexp(1.0f, -8)), 0x3f80);  // tie to even
  EXPECT_EQ(FloatToBf16(1.0f + 3 * std::ldexp(1.0f, -8)), 0x3f82);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(NAN))));
  EXPECT_TRUE(std::isinf(Bf16ToFloat(FloatToBf16Stochastic(INFINITY, 0xffffffffu))));
}

}  // namespace
}  // namespace portolan::kernels
