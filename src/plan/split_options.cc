#include "plan/split_options.h"

#include <algorithm>

namespace portolan {
namespace {

constexpr int kSplitCounts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
constexpr int64_t kLeastColumns = 16;  // a narrower fp32 row is less than a memory line

}  // namespace

std::vector<TableSplit> SplitOptions(const Model& model, const Recipe& recipe, const Cluster& cluster, size_t table,
                                     const TablePlacement& place) {
  const Table& shape = model.tables[table];
  const bool named = recipe.tables.count(shape.name) > 0;
  const Sharding asked = named ? recipe.tables.at(shape.name).sharding : recipe.sharding;
  if (place.sharding == Sharding::kDataParallel || asked != Sharding::kAuto || cluster.devices == 1) {
    return {SplitOf(place)};
  }
  std::vector<TableSplit> options;
  for (const int count : kSplitCounts) {
    if (count > cluster.devices) break;
    if (count == 1) {
      options.push_back({Sharding::kTable, 1, 1});
      continue;
    }
    if (count <= shape.rows) options.push_back({Sharding::kRow, count, 1});
    if (shape.dim % count == 0 && shape.dim / count >= kLeastColumns) options.push_back({Sharding::kColumn, 1, count});
  }
  const int per_node = std::min(cluster.devices, cluster.devices_per_node);
  for (int nodes = 1; cluster.nodes() > 1 && per_node > 1 && nodes <= cluster.nodes(); nodes *= 2) {
    options.push_back({Sharding::kTableRow, nodes * per_node, 1});
  }
  return options;
}

}  // namespace portolan
