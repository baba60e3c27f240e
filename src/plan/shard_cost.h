#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cost/estimate.h"
#include "hw/catalogue.h"
#include "model/model.h"
#include "plan/hot_rows.h"
#include "plan/placement.h"
#include "recipe/recipe.h"

namespace portolan {

// How a table is cut, without the ranks: row_shards x column_shards shards. kTableRow: the row shards fill whole nodes
// and their pooled sums are added inside a node before they leave it.
struct TableSplit {
  Sharding sharding = Sharding::kTable;
  int row_shards = 1;
  int column_shards = 1;
  int shards() const { return row_shards * column_shards; }
  bool operator<(const TableSplit& other) const {
    return std::tie(sharding, row_shards, column_shards) <
           std::tie(other.sharding, other.row_shards, other.column_shards);
  }
};
TableSplit SplitOf(const TablePlacement& place);

// What one shard of a table costs its rank in one step, the mean over the table's shards. Kernel totals are without
// `launch`, which the tables of one kernel share.
struct ShardCost {
  Estimate forward, sort, update;
  double sent_elements = 0;      // unpooled rows and, exchanged flat, pooled sums
  double unpooled_elements = 0;  // of them, rows as they are
  double reduced_elements = 0;   // pooled sums that are first reduced inside the node
  // Elements that every device receives from all shards of the table.
  double received_elements = 0;
  // One row that takes a share h of the lookups loads its shard (the first) with h + (1 - h) / parts of them.
  double first_factor = 1, other_factor = 1;
};

// What of one table does not depend on how it is split.
struct TableWork {
  double index_exchange_bytes = 0;
  double local_output_elements = 0;
  double local_unique_elements = 0;
  double input_bytes = 0;
  double dense_gradient_elements = 0;
  Estimate hot_forward, hot_update;  // the replicated hottest rows, on every device
};

// Prices shards by the cost model, each (table, split) once. Holds references: model, recipe and cluster must outlive
// it.
class ShardPricer {
 public:
  ShardPricer(const Model& model, const Recipe& recipe, const Cluster& cluster);

  // `split` of a replicated table: kDataParallel; its cost is that of one copy and its local batch.
  const ShardCost& Price(size_t table, const TableSplit& split);
  TableWork WorkOf(size_t table, const TableSplit& split) const;
  bool Used(size_t table) const { return demands_[table].lookups > 0; }

  const Model& model() const { return model_; }
  const Recipe& recipe() const { return recipe_; }
  const Cluster& cluster() const { return cluster_; }

 private:
  // Sums over the features of one table, per sample.
  struct TableDemand {
    double lookups = 0;           // pooled and unpooled
    double pooled_outputs = 0;    // bags
    double unpooled_lookups = 0;  // rows that leave as they are
    double unique_global = 0;     // distinct rows of the global batch
    double unique_local = 0;      // of one device's batch
    double hottest_share = 0;     // of the lookups, to one row
    double zipf_exponent = 0;     // of the most looked-up feature
    bool bags_repeat = false;     // all lookups of a bag are hot or cold together
  };
  void FindHotRows();
  void AddHotRows(size_t table, TableWork* work) const;
  // Share of the pooled bags that still need a row of the owner.
  double ColdBags(size_t table) const;
  bool Deduplicates(size_t table, const TableSplit& split) const;
  ShardCost Compute(size_t table, const TableSplit& split) const;

  std::vector<HotRows> hot_;  // of each table, replicated by Recipe::hot_rows
  const Model& model_;
  const Recipe& recipe_;
  const Cluster& cluster_;
  EmbeddingOptimizer optimizer_;
  double local_batch_ = 0, global_batch_ = 0;
  std::vector<TableDemand> demands_;
  std::vector<std::map<TableSplit, ShardCost>> prices_;
};

}  // namespace portolan
