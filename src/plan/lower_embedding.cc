#include <algorithm>

#include "plan/graph_builder.h"

namespace portolan {
namespace {

// Sums over the features of one table, per sample.
struct TableDemand {
  double lookups = 0;           // pooled and unpooled
  double pooled_outputs = 0;    // bags
  double unpooled_lookups = 0;  // rows that leave as they are
  double unique_global = 0;     // distinct rows of the global batch
  double unique_local = 0;      // of one device's batch
  double hottest_share = 0;     // of the lookups, to one row
};

std::vector<TableDemand> Demands(const Model& model, double global_batch, double local_batch) {
  std::vector<TableDemand> demands(model.tables.size());
  for (const Feature& feature : model.features) {
    TableDemand& demand = demands[static_cast<size_t>(feature.table)];
    const bool pooled = model.groups[static_cast<size_t>(feature.group)].pooling == Pooling::kSum;
    demand.lookups += feature.lookups;
    (pooled ? demand.pooled_outputs : demand.unpooled_lookups) += pooled ? 1.0 : feature.lookups;
    demand.unique_global += model.UniqueRows(feature, global_batch);
    demand.unique_local += model.UniqueRows(feature, local_batch);
    demand.hottest_share += feature.hottest_row_share * feature.lookups;
  }
  for (size_t t = 0; t < demands.size(); ++t) {
    demands[t].unique_global = std::min(demands[t].unique_global, model.tables[t].rows);
    demands[t].unique_local = std::min(demands[t].unique_local, model.tables[t].rows);
    if (demands[t].lookups > 0) demands[t].hottest_share /= demands[t].lookups;
  }
  return demands;
}

// What one shard costs its rank.
struct ShardCost {
  Estimate forward, sort, update;
  double sent_elements = 0;      // unpooled rows and, exchanged flat, pooled sums
  double unpooled_elements = 0;  // of them, rows as they are
  double tables = 0;
  double reduced_elements = 0;  // pooled sums that are first reduced inside the node
};

void Accumulate(Estimate& total, const Estimate& part, double factor) {
  total.compute += factor * part.compute;
  total.memory += factor * part.memory;
  total.total += factor * (part.total - part.launch);
}

}  // namespace

EmbeddingWork MeasureEmbeddings(const GraphBuilder& b, const Placement& placement, RankBalance balance) {
  const Model& model = b.model;
  const Recipe& recipe = b.recipe;
  const int devices = b.cluster.devices;
  const double global_batch = b.local_batch * devices;
  const std::vector<TableDemand> demands = Demands(model, global_batch, b.local_batch);
  const EmbeddingOptimizer optimizer = recipe.embedding_optimizer.value_or(model.embedding_optimizer);
  const double index_bytes = SizeOf(recipe.index).value;
  const double output_bytes = SizeOf(recipe.embedding_output).value;

  EmbeddingWork work;
  std::vector<ShardCost> ranks(static_cast<size_t>(devices));
  double received_elements = 0;
  Seconds forward_launch, sort_launch, update_launch;  // fixed costs that tables of one launch share

  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    const TableDemand& demand = demands[t];
    if (demand.lookups <= 0) continue;
    const bool copies = place.sharding == Sharding::kDataParallel;
    const bool everywhere = place.ranks.empty();
    const double row_parts = copies ? 1.0 : place.row_shards;
    const double samples = copies ? b.local_batch : global_batch;
    const bool dedup = !copies && recipe.dedup == IndexDedup::kBeforeExchange && demand.unpooled_lookups > 0;
    const double dim = static_cast<double>(model.tables[t].dim) / place.column_shards;
    // With dedup each device asks for its distinct rows only.
    const double asked = dedup ? devices * demand.unique_local : samples * demand.lookups;
    const double unpooled = dedup ? asked : samples * demand.unpooled_lookups;

    EmbeddingShape shape;
    shape.lookups = asked / row_parts;
    shape.bags = unpooled / row_parts + samples * demand.pooled_outputs;
    shape.unique_rows = std::min(shape.lookups, (copies ? demand.unique_local : demand.unique_global) / row_parts);
    shape.table_rows = model.tables[t].rows / row_parts;
    shape.dim = std::max<int64_t>(1, static_cast<int64_t>(dim));
    shape.row = recipe.embedding_row;
    shape.output = recipe.embedding_output;
    shape.index = recipe.index;

    ShardCost cost;
    cost.forward = EmbeddingForwardEstimate(shape, b.chip);
    cost.sort = EmbeddingSortEstimate(shape, b.chip);
    cost.update = EmbeddingUpdateEstimate(shape, optimizer, b.chip);
    // Bags without a lookup on this shard still write a zero vector.
    const double empty = std::max(0.0, shape.bags - shape.lookups);
    const Seconds zeros = Bytes(empty * dim * output_bytes) / b.chip.hbm_sustained;
    cost.forward.memory += zeros;
    cost.forward.total += zeros;
    forward_launch = std::max(forward_launch, cost.forward.launch);
    sort_launch = std::max(sort_launch, cost.sort.launch);
    update_launch = std::max(update_launch, cost.update.launch);
    if (copies && devices > 1) {
      // The gradient is dense: the optimizer passes over the whole table.
      DenseOptimizerShape dense;
      dense.optimizer = DenseOptimizer::kAdagrad;
      dense.parameters = model.tables[t].rows * static_cast<double>(model.tables[t].dim);
      dense.gradient = recipe.dense_gradient_comm;
      Accumulate(cost.update, DenseOptimizerEstimate(dense, b.chip), 1.0);
      work.dense_gradient_elements += dense.parameters;
    }
    if (!copies) {
      const double pooled_elements = global_batch * demand.pooled_outputs * dim;
      const bool within_node = place.sharding == Sharding::kTableRow && place.row_shards > 1;
      (within_node ? cost.reduced_elements : cost.sent_elements) += pooled_elements;
      cost.unpooled_elements = unpooled / row_parts * dim;
      cost.sent_elements += cost.unpooled_elements;
      const double flat = within_node ? 0 : pooled_elements * row_parts;
      received_elements += (flat + unpooled * dim) * place.column_shards / devices;
      work.index_exchange_bytes +=
          (dedup ? demand.unique_local : b.local_batch * demand.lookups) * index_bytes + 4 * b.local_batch;
    }
    work.local_output_elements +=
        b.local_batch * (demand.pooled_outputs + demand.unpooled_lookups) * static_cast<double>(model.tables[t].dim);
    if (dedup) {
      work.local_unique_elements += demand.unique_local * static_cast<double>(model.tables[t].dim);
    }
    work.input_bytes += b.local_batch * demand.lookups * index_bytes;

    // One row that takes a share h of the lookups loads its shard with h + (1 - h) / parts of them. Dedup asks for it
    // once a device.
    const double hot = dedup ? 0.0 : demand.hottest_share;
    const double hot_factor = row_parts > 1 ? hot * row_parts + (1 - hot) : 1.0;
    const double cold_factor = row_parts > 1 ? 1 - hot : 1.0;
    const int first = everywhere ? 0 : place.ranks.front();
    const size_t shard_count = everywhere ? static_cast<size_t>(devices) : place.ranks.size();
    for (size_t s = 0; s < shard_count; ++s) {
      const int rank = everywhere ? static_cast<int>(s) : place.ranks[s];
      const double factor = rank == first ? hot_factor : cold_factor;
      ShardCost& sum = ranks[static_cast<size_t>(rank)];
      Accumulate(sum.forward, cost.forward, factor);
      Accumulate(sum.sort, cost.sort, factor);
      Accumulate(sum.update, cost.update, factor);
      sum.sent_elements += cost.sent_elements * factor;
      sum.unpooled_elements += cost.unpooled_elements * factor;
      sum.reduced_elements += cost.reduced_elements;
      sum.tables += 1;
    }
  }

  double sent = 0, reduced = 0;
  ShardCost waited = ranks[0];
  ShardCost total;
  const auto time_of = [](const ShardCost& rank) { return rank.forward.total + rank.sort.total + rank.update.total; };
  for (const ShardCost& rank : ranks) {
    sent = std::max(sent, rank.sent_elements);
    reduced = std::max(reduced, rank.reduced_elements);
    work.owner_unpooled_elements = std::max(work.owner_unpooled_elements, rank.unpooled_elements);
    if (time_of(rank) > time_of(waited)) waited = rank;
    Accumulate(total.forward, rank.forward, 1.0 / devices);
    Accumulate(total.sort, rank.sort, 1.0 / devices);
    Accumulate(total.update, rank.update, 1.0 / devices);
    total.sent_elements += rank.sent_elements / devices;
    total.reduced_elements += rank.reduced_elements / devices;
    total.unpooled_elements += rank.unpooled_elements / devices;
    total.tables += rank.tables / devices;
  }
  if (balance == RankBalance::kMean) {
    waited = total;
    sent = total.sent_elements;
    reduced = total.reduced_elements;
    work.owner_unpooled_elements = total.unpooled_elements;
  }
  work.forward = waited.forward;
  work.index_sort = waited.sort;
  work.backward = waited.update;
  if (work.forward.total.value > 0) {
    work.kernels = recipe.table_kernels == TableKernels::kPerTable ? std::max(1.0, waited.tables) : 1.0;
    work.forward.launch = work.kernels * forward_launch;
    work.index_sort.launch = work.kernels * sort_launch;
    work.backward.launch = work.kernels * update_launch;
    for (Estimate* estimate : {&work.forward, &work.index_sort, &work.backward}) estimate->total += estimate->launch;
  }
  const double busiest = std::max(sent, received_elements);
  work.forward_exchange_bytes = busiest * SizeOf(recipe.embedding_forward_comm).value;
  work.backward_exchange_bytes = busiest * SizeOf(recipe.embedding_backward_comm).value;
  work.node_reduce_elements = reduced;
  work.input_bytes += b.local_batch * (model.DenseElements() + 1) * 4;
  return work;
}

}  // namespace portolan
