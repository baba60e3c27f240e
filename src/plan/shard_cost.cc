#include "plan/shard_cost.h"

#include <algorithm>
#include <cmath>

#include "cost/embedding.h"
#include "cost/memory_bound.h"
#include "plan/host_tables.h"

namespace portolan {
namespace {

// The dense optimizer that passes over a replicated table as often; one value a row is not worth counting.
DenseOptimizer DenseFormOf(EmbeddingOptimizer optimizer) {
  switch (optimizer) {
    case EmbeddingOptimizer::kNone:
    case EmbeddingOptimizer::kSgd:
    case EmbeddingOptimizer::kRowwiseAdagrad:
      return DenseOptimizer::kSgd;
    case EmbeddingOptimizer::kAdagrad:
    case EmbeddingOptimizer::kRowwiseAdam:
      return DenseOptimizer::kAdagrad;
    case EmbeddingOptimizer::kAdam:
      return DenseOptimizer::kAdam;
  }
  return DenseOptimizer::kAdam;
}

// Adds a kernel without its fixed cost, and keeps the largest fixed cost.
void AddKernel(Estimate& total, const Estimate& part) {
  total.compute += part.compute;
  total.memory += part.memory;
  total.total += part.total - part.launch;
}

Estimate WithoutLaunch(Estimate estimate) {
  estimate.total -= estimate.launch;
  return estimate;
}

}  // namespace

TableSplit SplitOf(const TablePlacement& place) { return {place.sharding, place.row_shards, place.column_shards}; }

ShardPricer::ShardPricer(const Model& model, const Recipe& recipe, const Cluster& cluster)
    : model_(model),
      recipe_(recipe),
      cluster_(cluster),
      optimizer_(recipe.embedding_optimizer.value_or(model.embedding_optimizer)),
      local_batch_(static_cast<double>(recipe.GlobalBatch(cluster.devices)) / cluster.devices),
      global_batch_(local_batch_ * cluster.devices),
      demands_(model.tables.size()),
      prices_(model.tables.size()) {
  for (const Feature& feature : model.features) {
    TableDemand& demand = demands_[static_cast<size_t>(feature.table)];
    const bool pooled = model.groups[static_cast<size_t>(feature.group)].pooling == Pooling::kSum;
    demand.lookups += feature.lookups;
    (pooled ? demand.pooled_outputs : demand.unpooled_lookups) += pooled ? 1.0 : feature.lookups;
    demand.unique_global += model.UniqueRows(feature, global_batch_);
    demand.unique_local += model.UniqueRows(feature, local_batch_);
    demand.hottest_share += feature.hottest_row_share * feature.lookups;
    demand.zipf_exponent = std::max(demand.zipf_exponent, feature.zipf_exponent);
    demand.bags_repeat = demand.bags_repeat || feature.skew_of == Feature::SkewOf::kBag;
  }
  for (size_t t = 0; t < demands_.size(); ++t) {
    demands_[t].unique_global = std::min(demands_[t].unique_global, model.tables[t].rows);
    demands_[t].unique_local = std::min(demands_[t].unique_local, model.tables[t].rows);
    if (demands_[t].lookups > 0) demands_[t].hottest_share /= demands_[t].lookups;
  }
  hot_.resize(demands_.size());
  if (recipe.hot_rows > 0 && cluster.devices > 1) FindHotRows();
}

// Pooled tables that are not replicated as a whole; unpooled rows are what dedup is for.
void ShardPricer::FindHotRows() {
  std::vector<RowDemand> tables;
  for (size_t t = 0; t < demands_.size(); ++t) {
    const double bytes = model_.tables[t].rows * RowAndStateBytes(model_, recipe_, t).value;
    const bool small = recipe_.sharding == Sharding::kAuto && bytes <= recipe_.data_parallel_max.value;
    const bool takes_part = !small && demands_[t].unpooled_lookups <= 0;
    tables.push_back({model_.tables[t].rows, takes_part ? demands_[t].lookups : 0.0, demands_[t].zipf_exponent});
  }
  hot_ = HottestRows(tables, static_cast<double>(recipe_.hot_rows));
}

double ShardPricer::ColdBags(size_t table) const {
  const TableDemand& demand = demands_[table];
  if (hot_[table].share <= 0 || demand.pooled_outputs <= 0) return 1;
  if (demand.bags_repeat) return 1 - hot_[table].share;
  return 1 - std::pow(hot_[table].share, std::max(1.0, demand.lookups / demand.pooled_outputs));
}

const ShardCost& ShardPricer::Price(size_t table, const TableSplit& split) {
  std::map<TableSplit, ShardCost>& prices = prices_[table];
  const auto found = prices.find(split);
  if (found != prices.end()) return found->second;
  return prices.emplace(split, Compute(table, split)).first->second;
}

bool ShardPricer::Deduplicates(size_t table, const TableSplit& split) const {
  return split.sharding != Sharding::kDataParallel && recipe_.dedup == IndexDedup::kBeforeExchange &&
         demands_[table].unpooled_lookups > 0;
}

TableWork ShardPricer::WorkOf(size_t table, const TableSplit& split) const {
  const TableDemand& demand = demands_[table];
  const double index_bytes = SizeOf(recipe_.index).value;
  const double dim = static_cast<double>(model_.tables[table].dim);
  const bool dedup = Deduplicates(table, split);
  TableWork work;
  if (split.sharding != Sharding::kDataParallel) {
    const double cold = local_batch_ * demand.lookups * (1 - hot_[table].share);
    work.index_exchange_bytes = (dedup ? demand.unique_local : cold) * index_bytes + 4 * local_batch_;
    AddHotRows(table, &work);
  } else if (cluster_.devices > 1) {
    work.dense_gradient_elements = model_.tables[table].rows * dim;
  }
  work.local_output_elements = local_batch_ * (demand.pooled_outputs + demand.unpooled_lookups) * dim;
  if (dedup) work.local_unique_elements = demand.unique_local * dim;
  work.input_bytes = local_batch_ * demand.lookups * index_bytes;
  return work;
}

// The replicated hottest rows of a table: looked up on the device of the sample, their gradient reduced like that of a
// dense layer and applied to every copy.
void ShardPricer::AddHotRows(size_t table, TableWork* work) const {
  const HotRows& hot = hot_[table];
  if (hot.rows < 1) return;
  const TableDemand& demand = demands_[table];
  const int64_t dim = model_.tables[table].dim;
  EmbeddingShape shape;
  shape.lookups = local_batch_ * demand.lookups * hot.share;
  shape.bags = std::min(shape.lookups, local_batch_ * demand.pooled_outputs);
  shape.table_rows = hot.rows;
  shape.unique_rows =
      std::min(shape.lookups, std::max(1.0, ExpectedUniqueRows(shape.lookups, hot.rows, demand.zipf_exponent)));
  shape.dim = dim;
  shape.row = recipe_.embedding_row;
  shape.output = recipe_.embedding_output;
  shape.index = recipe_.index;
  work->hot_forward = WithoutLaunch(EmbeddingForwardEstimate(shape, cluster_.accelerator));
  work->hot_update = WithoutLaunch(EmbeddingUpdateEstimate(shape, EmbeddingOptimizer::kNone, cluster_.accelerator));
  DenseOptimizerShape dense;
  dense.optimizer = DenseFormOf(optimizer_);
  dense.parameters = hot.rows * static_cast<double>(dim);
  dense.gradient = recipe_.dense_gradient_comm;
  dense.state = recipe_.embedding_state;
  AddKernel(work->hot_update, DenseOptimizerEstimate(dense, cluster_.accelerator));
  work->dense_gradient_elements += dense.parameters;
}

ShardCost ShardPricer::Compute(size_t table, const TableSplit& split) const {
  const TableDemand& demand = demands_[table];
  const Table& shape_of_table = model_.tables[table];
  const Accelerator& chip = cluster_.accelerator;
  const bool copies = split.sharding == Sharding::kDataParallel;
  const double row_parts = copies ? 1.0 : split.row_shards;
  const double samples = copies ? local_batch_ : global_batch_;
  const bool dedup = Deduplicates(table, split);
  const double dim = static_cast<double>(shape_of_table.dim) / split.column_shards;
  // With dedup each device asks for its distinct rows only.
  const double cold = copies ? 1.0 : 1 - hot_[table].share;
  const double bags = samples * demand.pooled_outputs * (copies ? 1.0 : ColdBags(table));
  const double asked = dedup ? cluster_.devices * demand.unique_local : samples * demand.lookups * cold;
  const double unpooled = dedup ? asked : samples * demand.unpooled_lookups;

  EmbeddingShape shape;
  shape.lookups = asked / row_parts;
  shape.bags = unpooled / row_parts + bags;
  const double distinct = copies ? demand.unique_local : std::max(1.0, demand.unique_global - hot_[table].rows);
  shape.unique_rows = std::min(shape.lookups, distinct / row_parts);
  shape.table_rows = shape_of_table.rows / row_parts;
  shape.dim = std::max<int64_t>(1, static_cast<int64_t>(dim));
  shape.row = recipe_.embedding_row;
  shape.output = recipe_.embedding_output;
  shape.index = recipe_.index;
  shape.state = recipe_.embedding_state;

  ShardCost cost;
  cost.forward = WithoutLaunch(EmbeddingForwardEstimate(shape, chip));
  cost.sort = WithoutLaunch(EmbeddingSortEstimate(shape, chip));
  cost.update = WithoutLaunch(EmbeddingUpdateEstimate(shape, optimizer_, chip));
  // Bags without a lookup on this shard still write a zero vector.
  const double empty = std::max(0.0, shape.bags - shape.lookups);
  const Seconds zeros = Bytes(empty * dim * SizeOf(recipe_.embedding_output).value) / chip.hbm_sustained;
  cost.forward.memory += zeros;
  cost.forward.total += zeros;
  if (copies) {
    if (cluster_.devices == 1) return cost;
    // The gradient is dense: the optimizer passes over the whole table.
    DenseOptimizerShape dense;
    dense.optimizer = DenseFormOf(optimizer_);
    dense.parameters = shape_of_table.rows * static_cast<double>(shape_of_table.dim);
    dense.gradient = recipe_.dense_gradient_comm;
    dense.state = recipe_.embedding_state;
    AddKernel(cost.update, DenseOptimizerEstimate(dense, chip));
    return cost;
  }
  const double pooled_elements = bags * dim;
  const bool within_node = split.sharding == Sharding::kTableRow && split.row_shards > 1;
  (within_node ? cost.reduced_elements : cost.sent_elements) = pooled_elements;
  cost.unpooled_elements = unpooled / row_parts * dim;
  cost.sent_elements += cost.unpooled_elements;
  const double flat = within_node ? 0 : pooled_elements * row_parts;
  cost.received_elements = (flat + unpooled * dim) * split.column_shards / cluster_.devices;
  // Dedup asks for the hottest row once a device.
  const double hot = dedup ? 0.0 : demand.hottest_share;
  if (row_parts > 1) {
    cost.first_factor = hot * row_parts + (1 - hot);
    cost.other_factor = 1 - hot;
  }
  return cost;
}

}  // namespace portolan
