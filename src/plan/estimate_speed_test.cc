#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

// 1,000 tables of mixed sizes, dimensions, lookups and skews: every table its own.
Model ThousandTables() {
  std::string text = "model: thousand\ndense_features: 512\ntables:\n";
  constexpr int kDims[] = {16, 32, 64, 128};
  for (int t = 0; t < 1000; ++t) {
    const double rows = std::floor(std::exp2(5 + 20.0 * ((t * 37) % 1000) / 1000) + t);
    text += fmt::format("  - {{name: table_{}, rows: {:.0f}, dim: {}, lookups: {}, zipf_exponent: {:.3f}}}\n", t, rows,
                        kDims[t % 4], 1 + (t * 7) % 40, 0.6 + 0.8 * ((t * 13) % 1000) / 1000);
  }
  text +=
      "blocks:\n"
      "  - {name: bottom, type: mlp, input: dense, widths: [1024, 512, 128]}\n"
      "  - {name: features, type: concat, inputs: [bottom, embeddings]}\n"
      "  - {name: cross, type: low_rank_cross, input: features, layers: 3, rank: 512}\n"
      "  - {name: top, type: mlp, input: cross, widths: [1024, 512, 256, 1]}\n";
  return ModelFromText(text);
}

double SecondsOf(const auto& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A million exponentials one after the other, what the estimate mostly computes.
double ReferenceLoop() {
  double x = 0.5;
  for (int i = 0; i < 1000000; ++i) x = std::exp(-x);
  return x;
}

TEST(EstimateSpeedTest, AThousandTablesOn128DevicesTakeLessThan50Milliseconds) {
#ifdef PORTOLAN_SANITIZED
  GTEST_SKIP() << "a sanitizer is on: times mean nothing";
#endif
  const Model model = ThousandTables();
  const Cluster cluster = TestCluster("128xh100");
  Recipe recipe = DefaultRecipe();
  const StepEstimate first = EstimateOrFail(model, recipe, cluster);
  ASSERT_GT(first.samples_per_s, 0);
  ASSERT_EQ(first.placement.tables.size(), 1000u);

  std::vector<double> times, reference;
  double sink = 0;
  for (int run = 0; run < 7; ++run) {
    times.push_back(SecondsOf([&] { sink += EstimateStep(model, recipe, cluster)->step.value; }));
    reference.push_back(SecondsOf([&] { sink += ReferenceLoop(); }));
  }
  EXPECT_GT(sink, 0);
  const double best = *std::min_element(times.begin(), times.end());
  const double best_reference = *std::min_element(reference.begin(), reference.end());
  fmt::print("1,000 tables on 128 devices: best {:.1f} ms, median {:.1f} ms; a million exp: best {:.1f} ms\n",
             1e3 * best, 1e3 * Median(times), 1e3 * best_reference);
  EXPECT_LT(best, 0.050) << "on a machine whose reference loop takes " << 1e3 * best_reference << " ms";
}

}  // namespace
}  // namespace portolan
