#include <algorithm>
#include <array>
#include <vector>

#include "select/family_cublaslt.h"

namespace portolan {
namespace {

// The enumeration grew in three steps, each over what was not there yet: a hand-picked list, tiles of up to 48 Ki
// elements whose columns are multiples of 64, and tiles of up to 64 Ki whose rows are multiples of 64.
std::vector<TileSides> BuildTiles() {
  std::vector<TileSides> tiles = {
      {0, 0},    {8, 8},    {8, 16},    {16, 8},    {8, 32},    {16, 16},   {32, 8},    {8, 64},   {16, 32},
      {32, 16},  {64, 8},   {32, 32},   {32, 64},   {64, 32},   {32, 128},  {64, 64},   {128, 32}, {64, 128},
      {128, 64}, {64, 256}, {128, 128}, {256, 64},  {64, 512},  {128, 256}, {256, 128}, {512, 64}, {64, 96},
      {96, 64},  {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},  {32, 256}, {256, 32}};
  const auto add = [&](int rows, int columns) {
    const auto same = [&](const TileSides& t) { return t.rows == rows && t.columns == columns; };
    if (std::none_of(tiles.begin(), tiles.end(), same)) tiles.push_back({rows, columns});
  };
  for (int rows = 8; rows <= 768; rows += 8) {
    for (int columns = 64; columns <= 768 && rows * columns <= 48 * 1024; columns += 64) add(rows, columns);
  }
  for (int rows = 64; rows <= 768; rows += 64) {
    for (int columns = 8; columns <= 768 && rows * columns <= 64 * 1024; columns += 8) add(rows, columns);
  }
  for (const TileSides& last : {TileSides{256, 512}, {256, 1024}, {512, 512}, {512, 1024}}) tiles.push_back(last);
  return tiles;
}

constexpr std::array<TileSides, 52> kClusters = {
    {{1, 1},  {1, 1},  {1, 1},  {2, 1},  {4, 1}, {1, 2}, {2, 2}, {4, 2},  {1, 4},  {2, 4},  {4, 4},  {8, 1},  {1, 8},
     {8, 2},  {2, 8},  {16, 1}, {1, 16}, {3, 1}, {5, 1}, {6, 1}, {7, 1},  {9, 1},  {10, 1}, {11, 1}, {12, 1}, {13, 1},
     {14, 1}, {15, 1}, {3, 2},  {5, 2},  {6, 2}, {7, 2}, {1, 3}, {2, 3},  {3, 3},  {4, 3},  {5, 3},  {3, 4},  {1, 5},
     {2, 5},  {3, 5},  {1, 6},  {2, 6},  {1, 7}, {2, 7}, {1, 9}, {1, 10}, {1, 11}, {1, 12}, {1, 13}, {1, 14}, {1, 15}}};

// Stages by id: 16x1 to 128x6 are 1 to 24, then 32x10, 8x4, 16x10, 8x5, 8x3; from 32 on as many as fit.
constexpr std::array<int8_t, 32> kStages = {0, 1, 2, 3, 4, 5, 6, 1, 2, 3,  4, 5,  6, 1, 2, 3,
                                            4, 5, 6, 1, 2, 3, 4, 5, 6, 10, 4, 10, 5, 0, 0, 3};

}  // namespace

std::optional<TileSides> CublasLtTile(int tile_id) {
  static const std::vector<TileSides> kTiles = BuildTiles();
  if (tile_id <= 0 || tile_id >= static_cast<int>(kTiles.size())) return std::nullopt;
  return kTiles[static_cast<size_t>(tile_id)];
}

TileSides CublasLtCluster(int cluster_id) {
  if (cluster_id < 0 || cluster_id >= static_cast<int>(kClusters.size())) return {1, 1};
  return kClusters[static_cast<size_t>(cluster_id)];
}

int CublasLtStages(int stages_id) {
  if (stages_id < 0 || stages_id >= static_cast<int>(kStages.size())) return 0;
  return kStages[static_cast<size_t>(stages_id)];
}

void SetCublasLtIds(GemmKernel* kernel) {
  const TileSides tile = CublasLtTile(kernel->tile_id).value_or(TileSides{0, 0});
  kernel->tile_n = static_cast<int16_t>(tile.rows);
  kernel->tile_m = static_cast<int16_t>(tile.columns);
  const TileSides cluster = CublasLtCluster(kernel->cluster_id);
  kernel->cluster_n = static_cast<int16_t>(cluster.rows);
  kernel->cluster_m = static_cast<int16_t>(cluster.columns);
  kernel->stages = static_cast<int16_t>(CublasLtStages(kernel->stages_id));
  kernel->reduction = kernel->split_k <= 1        ? SplitReduction::kNone
                      : kernel->reduction_id == 1 ? SplitReduction::kInPlace
                                                  : SplitReduction::kWorkspace;
}

}  // namespace portolan
