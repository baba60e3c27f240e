#pragma once

#include <vector>

#include "base/error.h"
#include "hw/catalogue.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

// Where one table lives. A table is split `row_shards` x `column_shards` ways; shard s is on ranks[s]. kDataParallel:
// every rank holds it and `ranks` is empty; kRow: every rank holds 1/devices and `ranks` is empty; kTableRow: ranks are
// the devices of one node.
struct TablePlacement {
  Sharding sharding = Sharding::kTable;
  int row_shards = 1;
  int column_shards = 1;
  std::vector<int> ranks;
};

// What one rank holds.
struct RankLoad {
  double table_bytes = 0;  // rows, without optimizer state
  double state_bytes = 0;
};

struct Placement {
  std::vector<TablePlacement> tables;  // as Model::tables
  std::vector<RankLoad> ranks;
};

// Lays the tables out as the recipe says. kAuto: replicate tables whose weights and state are at most
// data_parallel_max; split the others by row as far as their size demands, and further while that shortens the slowest
// rank's lookups plus the slowest rank's exchange; deal the shards hottest first to the least loaded rank that has room
// (longest processing time first, Graham 1969: at most 4/3 of the optimum). A shard's load is its lookups plus a charge
// for every pooled output that it sends, the ratio of HBM to link rates. On several nodes whose NIC is the slower link,
// kAuto deals tables to nodes and splits them by row over the node's devices. `memory_per_device` is what tables may
// use. Deterministic. Never fails: a table that fits nowhere goes to the least filled rank, and the memory estimate
// says so.
Placement PlaceTables(const Model& model, const Recipe& recipe, const Cluster& cluster, Bytes memory_per_device);

// Fills Placement::ranks from its tables.
void SumRankLoads(const Model& model, const Recipe& recipe, Placement* placement);

// Sum of `lookups` over the features that read each table, per sample.
std::vector<double> LookupsPerTable(const Model& model);
// Pooled bags (or unpooled rows) that each table contributes per sample.
std::vector<double> OutputsPerTable(const Model& model);

}  // namespace portolan
