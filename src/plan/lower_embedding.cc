#include <algorithm>

#include "plan/graph_builder.h"
#include "plan/host_tables.h"
#include "plan/shard_cost.h"

namespace portolan {
namespace {

// What the shards of one rank add up to.
struct RankCost {
  Estimate forward, sort, update, host_find;
  double sent_elements = 0;
  double unpooled_elements = 0;
  double reduced_elements = 0;
  double tables = 0;
  double host_row_bytes = 0;
  double sync_row_bytes = 0, sync_state_bytes = 0;
};

void Accumulate(Estimate& total, const Estimate& part, double factor) {
  total.compute += factor * part.compute;
  total.memory += factor * part.memory;
  total.total += factor * part.total;
}

void Accumulate(RankCost& total, const RankCost& part, double factor) {
  Accumulate(total.forward, part.forward, factor);
  Accumulate(total.sort, part.sort, factor);
  Accumulate(total.update, part.update, factor);
  Accumulate(total.host_find, part.host_find, factor);
  total.sent_elements += factor * part.sent_elements;
  total.unpooled_elements += factor * part.unpooled_elements;
  total.reduced_elements += factor * part.reduced_elements;
  total.tables += factor * part.tables;
  total.host_row_bytes += factor * part.host_row_bytes;
  total.sync_row_bytes += factor * part.sync_row_bytes;
  total.sync_state_bytes += factor * part.sync_state_bytes;
}

// The ranks meet at the exchange after each phase, so that each phase waits for the rank with the most to do in it.
void TakeLargest(RankCost& largest, const RankCost& rank) {
  if (rank.forward.total > largest.forward.total) largest.forward = rank.forward;
  if (rank.sort.total > largest.sort.total) largest.sort = rank.sort;
  if (rank.update.total > largest.update.total) largest.update = rank.update;
  if (rank.host_find.total > largest.host_find.total) largest.host_find = rank.host_find;
  largest.sent_elements = std::max(largest.sent_elements, rank.sent_elements);
  largest.unpooled_elements = std::max(largest.unpooled_elements, rank.unpooled_elements);
  largest.reduced_elements = std::max(largest.reduced_elements, rank.reduced_elements);
  largest.tables = std::max(largest.tables, rank.tables);
  largest.host_row_bytes = std::max(largest.host_row_bytes, rank.host_row_bytes);
  largest.sync_row_bytes = std::max(largest.sync_row_bytes, rank.sync_row_bytes);
  largest.sync_state_bytes = std::max(largest.sync_state_bytes, rank.sync_state_bytes);
}

// Copies of the sharded tables, looked up in this step or not, are averaged.
void AddReplicas(const ShardPricer& pricer, const Placement& placement, std::vector<RankCost>* ranks) {
  if (pricer.recipe().replicas == 1) return;
  const Model& model = pricer.model();
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    if (place.sharding == Sharding::kDataParallel) continue;
    const size_t shards = place.ranks.empty() ? ranks->size() : place.ranks.size();
    const double share = model.tables[t].rows / static_cast<double>(shards);
    const double state = share * RowStateBytes(model, pricer.recipe(), t).value;
    const double rows = share * RowAndStateBytes(model, pricer.recipe(), t).value - state;
    for (size_t s = 0; s < shards; ++s) {
      RankCost& rank = (*ranks)[place.ranks.empty() ? s : static_cast<size_t>(place.ranks[s])];
      rank.sync_row_bytes += rows;
      rank.sync_state_bytes += state;
    }
  }
}

}  // namespace

EmbeddingWork MeasureEmbeddings(const GraphBuilder& b, const Placement& placement, RankBalance balance) {
  ShardPricer pricer(b.model, b.recipe, b.cluster);
  return MeasureEmbeddings(pricer, placement, balance);
}

EmbeddingWork MeasureEmbeddings(ShardPricer& pricer, const Placement& placement, RankBalance balance) {
  const Model& model = pricer.model();
  const Recipe& recipe = pricer.recipe();
  const int devices = pricer.cluster().devices;
  EmbeddingWork work;
  std::vector<RankCost> ranks(static_cast<size_t>(devices));
  double received_elements = 0;
  Estimate hot_forward, hot_update;
  const bool any_in_host = AnyInHostMemory(model, recipe);
  const double global_batch = static_cast<double>(recipe.GlobalBatch(devices));
  Seconds forward_launch, sort_launch, update_launch;  // fixed costs that tables of one launch share

  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (!pricer.Used(t)) continue;
    const TablePlacement& place = placement.tables[t];
    const TableSplit split = SplitOf(place);
    const ShardCost& cost = pricer.Price(t, split);
    const TableWork whole = pricer.WorkOf(t, split);
    forward_launch = std::max(forward_launch, cost.forward.launch);
    sort_launch = std::max(sort_launch, cost.sort.launch);
    update_launch = std::max(update_launch, cost.update.launch);
    received_elements += cost.received_elements;
    work.dense_gradient_elements += whole.dense_gradient_elements;
    work.index_exchange_bytes += whole.index_exchange_bytes;
    work.local_output_elements += whole.local_output_elements;
    work.local_unique_elements += whole.local_unique_elements;
    work.input_bytes += whole.input_bytes;
    Accumulate(hot_forward, whole.hot_forward, 1);
    Accumulate(hot_update, whole.hot_update, 1);

    const bool everywhere = place.ranks.empty();
    const size_t shard_count = everywhere ? static_cast<size_t>(devices) : place.ranks.size();
    const double missed_bytes =
        any_in_host ? MissedRows(model, recipe, t, global_batch) * RowAndStateBytes(model, recipe, t).value : 0.0;
    for (size_t s = 0; s < shard_count; ++s) {
      RankCost& sum = ranks[everywhere ? s : static_cast<size_t>(place.ranks[s])];
      const double factor = s == 0 ? cost.first_factor : cost.other_factor;
      Accumulate(sum.forward, cost.forward, factor);
      Accumulate(sum.sort, cost.sort, factor);
      Accumulate(sum.update, cost.update, factor);
      sum.sent_elements += cost.sent_elements * factor;
      sum.unpooled_elements += cost.unpooled_elements * factor;
      sum.reduced_elements += cost.reduced_elements;
      sum.tables += 1;
      // The hottest rows are cached: every shard misses alike.
      if (missed_bytes <= 0) continue;
      sum.host_row_bytes += missed_bytes / static_cast<double>(shard_count);
      Accumulate(sum.host_find, cost.sort, factor);
    }
  }

  AddReplicas(pricer, placement, &ranks);
  RankCost waited;
  for (const RankCost& rank : ranks) {
    if (balance == RankBalance::kMean) {
      Accumulate(waited, rank, 1.0 / devices);
    } else {
      TakeLargest(waited, rank);
    }
  }
  work.forward = waited.forward;
  work.index_sort = waited.sort;
  work.backward = waited.update;
  Accumulate(work.forward, hot_forward, 1);
  Accumulate(work.backward, hot_update, 1);
  if (work.forward.total.value > 0) {
    work.kernels = recipe.table_kernels == TableKernels::kPerTable ? std::max(1.0, waited.tables) : 1.0;
    work.forward.launch = work.kernels * forward_launch;
    work.index_sort.launch = work.kernels * sort_launch;
    work.backward.launch = work.kernels * update_launch;
    for (Estimate* estimate : {&work.forward, &work.index_sort, &work.backward}) estimate->total += estimate->launch;
  }
  const double busiest = std::max(waited.sent_elements, received_elements);
  work.forward_exchange_bytes = busiest * SizeOf(recipe.embedding_forward_comm).value;
  work.backward_exchange_bytes = busiest * SizeOf(recipe.embedding_backward_comm).value;
  work.node_reduce_elements = waited.reduced_elements;
  work.owner_unpooled_elements = waited.unpooled_elements;
  work.host_row_bytes = waited.host_row_bytes;
  work.host_find = waited.host_find;
  if (work.host_row_bytes > 0) {
    work.host_find.launch = sort_launch;
    work.host_find.total += sort_launch;
  }
  work.sync_row_bytes = waited.sync_row_bytes;
  work.sync_state_bytes = waited.sync_state_bytes;
  const double local_batch = static_cast<double>(recipe.GlobalBatch(devices)) / devices;
  work.input_bytes += local_batch * (model.DenseElements() + 1) * 4;
  return work;
}

}  // namespace portolan
