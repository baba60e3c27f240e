#include "select/tile_lanes.h"

#include <gtest/gtest.h>

#include <random>

#include "select/test_devices.h"

namespace portolan {
namespace {

// Kernels of every kind: splits, clusters, stream-K, atomics, all classes, factors on both sides of the floor.
std::vector<TileKernel> Kernels(size_t count) {
  std::mt19937_64 random(17);
  const auto pick = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<TileKernel> kernels;
  for (size_t n = 0; n < count; ++n) {
    TileKernel k = MakeTileKernel(pick({16, 48, 64, 128, 256}), pick({32, 64, 96, 128, 256}), pick({16, 32, 64, 128}),
                                  static_cast<int>(pick({1, 1, 1, 2, 4, 7})));
    k.tile_class = static_cast<int>(random() % kMaxTileClasses);
    k.cluster_m = pick({1, 1, 2, 4}), k.cluster_n = pick({1, 1, 2});
    k.units = pick({100, 80, 33}), k.occupancy = pick({1, 2, 5});
    k.aspect = between(0.3, 3.0), k.rows_at_once = pick({0, 0, 4, 8});
    for (double& seconds : k.matrix) seconds = between(1e-8, 1e-6);
    k.lds = between(1e-8, 1e-6), k.l2 = between(1e-8, 1e-6), k.issue = between(1e-9, 1e-6);
    k.step = between(1e-9, 1e-7), k.wait = between(1e-8, 1e-6);
    k.prologue = between(1e-8, 1e-6), k.epilogue_tile = between(1e-8, 1e-6), k.epilogue_fixed = between(1e-9, 1e-7);
    k.launch = between(1e-6, 4e-6);
    k.seconds_per_hbm_byte = between(1e-13, 1e-12), k.seconds_per_l2_byte = between(1e-14, 1e-13);
    k.refetch = between(0.0, 1.0), k.step_l2_bytes = between(1e3, 1e5), k.bytes_k = pick({1, 2, 4});
    k.reduction = between(0.0, 1e-6), k.seconds_per_partial = between(0.0, 1e-12);
    k.output_factor = pick({1, 1, 4}), k.atomic = random() % 4 == 0, k.stream_k = random() % 3 == 0;
    for (double& factor : k.factor) factor = between(-1.0, 1.0);
    for (auto& layout : k.slopes) {
      for (float& slope : layout) slope = static_cast<float>(between(-2.0, 1.0));
    }
    kernels.push_back(k);
  }
  return kernels;
}

TEST(TileLanes, AgreeWithOneKernelAtATimeToTheLastBit) {
  const TileDevice device = DescribeTileDevice(RoundAccelerator(), DType::kBf16);
  std::vector<TileConstants> classes(kMaxTileClasses);
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i][kAlignA] = 0.1 * static_cast<double>(i + 1);
    classes[i][kAlignB] = 0.2, classes[i][kAlignD] = -0.1 * static_cast<double>(i);
  }
  const int64_t groups[] = {100, 0, 4001};
  for (const size_t count : {size_t{0}, size_t{1}, size_t{8}, size_t{13}, size_t{400}}) {
    const TileLanes lanes(Kernels(count));
    std::vector<double> seconds(lanes.size());
    for (const int64_t m : {int64_t{1}, int64_t{479}, int64_t{4101}, int64_t{1} << 30}) {
      for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
        for (int variant = 0; variant < 4; ++variant) {
          GemmProblem problem = Product(m, 1000 + variant, 7001);
          problem.layout = layout;
          if (variant == 1) problem.usable_units = 7;
          if (variant == 2) problem.batch = 30;
          if (variant == 3) problem.inputs = InputResidency::kJustProduced;
          if (m == 4101 && variant == 3) problem.group_m = groups, problem.groups = 3;
          const TileProblem p = DescribeTileProblem(problem, device, classes);
          lanes.ScoreAll(p, seconds);
          for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(seconds[i], EvaluateTileTotal(p, lanes.kernel(i))) << i << " of " << count << ", M " << m;
            ASSERT_EQ(seconds[i], EvaluateTile(p, lanes.kernel(i)).total);
            ASSERT_GT(seconds[i], 0.0);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace portolan
