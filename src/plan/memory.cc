#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/graph_builder.h"
#include "plan/host_tables.h"

namespace portolan {
namespace {

struct DenseMemory {
  Bytes parameters, gradients, state;
};

DenseMemory DenseMemoryOf(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  const double parameters = DenseParameters(model);
  const double share = recipe.dense_parallelism == DenseParallelism::kReplicated ? 1.0 : 1.0 / cluster.devices;
  const double weights = recipe.dense_parallelism == DenseParallelism::kFullySharded ? share : 1.0;
  DenseMemory memory;
  memory.parameters = Bytes(parameters * 4 * weights + 2 * NarrowParameters(model, recipe));
  memory.gradients = parameters * weights * SizeOf(recipe.dense_gradient_comm);
  memory.state = share * DenseOptimizerStateBytes(recipe.dense_optimizer.value_or(model.dense_optimizer), parameters,
                                                  recipe.dense_state);
  return memory;
}

// Copies of the hottest rows, at the widest table's dimension, and their optimizer state.
struct HotRowMemory {
  Bytes rows, state;
};
HotRowMemory HotRowMemoryOf(const Model& model, const Recipe& recipe) {
  int64_t dim = 0;
  double all = 0;
  for (const Table& table : model.tables) {
    dim = std::max(dim, table.dim);
    all += table.rows;
  }
  const EmbeddingOptimizer optimizer = recipe.embedding_optimizer.value_or(model.embedding_optimizer);
  const double count = std::min(static_cast<double>(recipe.hot_rows), all);
  return {count * static_cast<double>(dim) * SizeOf(recipe.embedding_row),
          count * EmbeddingStateBytesPerRow(optimizer, dim, recipe.embedding_state)};
}

// Whole tables and their state on the node that holds most of them; a shard's home is the node of its rank.
Bytes HostTableBytes(const Model& model, const Recipe& recipe, const Cluster& cluster, const Placement& placement) {
  if (!AnyInHostMemory(model, recipe)) return Bytes(0);
  std::vector<double> nodes(static_cast<size_t>(cluster.nodes()), 0.0);
  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (!InHostMemory(model, recipe, t)) continue;
    const double bytes = model.tables[t].rows * RowAndStateBytes(model, recipe, t).value;
    const std::vector<int>& ranks = placement.tables[t].ranks;
    const int shards = ranks.empty() ? cluster.devices : static_cast<int>(ranks.size());
    for (int s = 0; s < shards; ++s) {
      const int rank = ranks.empty() ? s : ranks[static_cast<size_t>(s)];
      nodes[static_cast<size_t>(rank / cluster.devices_per_node)] += bytes / shards;
    }
  }
  return Bytes(*std::max_element(nodes.begin(), nodes.end()));
}

}  // namespace

Bytes MemoryBesidesTables(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  const DenseMemory dense = DenseMemoryOf(model, recipe, cluster);
  const HotRowMemory hot = HotRowMemoryOf(model, recipe);
  return dense.parameters + dense.gradients + dense.state + hot.rows + hot.state + recipe.reserve;
}

MemoryEstimate EstimateMemory(const Model& model, const Recipe& recipe, const Cluster& cluster,
                              const Placement& placement, const StepGraph& graph) {
  MemoryEstimate memory;
  double fullest = -1;
  for (const RankLoad& rank : placement.ranks) {
    if (rank.table_bytes + rank.state_bytes <= fullest) continue;
    fullest = rank.table_bytes + rank.state_bytes;
    memory.tables = Bytes(rank.table_bytes);
    memory.table_state = Bytes(rank.state_bytes);
  }
  const HotRowMemory hot = HotRowMemoryOf(model, recipe);
  memory.tables += hot.rows;
  memory.table_state += hot.state;
  const DenseMemory dense = DenseMemoryOf(model, recipe, cluster);
  memory.dense_parameters = dense.parameters;
  memory.dense_gradients = dense.gradients;
  memory.dense_state = dense.state;
  for (const double saved : graph.saved_bytes_per_block) memory.activations += Bytes(saved);
  memory.transient = Bytes(graph.peak_transient_bytes);
  memory.exchange_buffers = Bytes(graph.exchange_buffer_bytes);
  memory.reserve = recipe.reserve;
  memory.total = memory.tables + memory.table_state + memory.dense_parameters + memory.dense_gradients +
                 memory.dense_state + memory.activations + memory.transient + memory.exchange_buffers + memory.reserve;
  memory.capacity = cluster.accelerator.hbm;
  memory.host_tables = HostTableBytes(model, recipe, cluster, placement);
  memory.host_capacity = std::min(cluster.devices, cluster.devices_per_node) * HostMemoryPerDevice(cluster.accelerator);
  return memory;
}

std::string MemoryEstimate::WhatWouldFit(const Cluster& cluster) const {
  if (Fits()) return "";
  if (FitsDevice()) {
    return host_capacity > Bytes(0)
               ? fmt::format("tables in host memory need {:.1f} GB of a node's {:.1f} GB; more nodes or narrower rows",
                             host_tables.value * 1e-9, host_capacity.value * 1e-9)
               : fmt::format("{} does not state its host memory", cluster.accelerator.id);
  }
  const Bytes fixed = tables + table_state + dense_parameters + dense_gradients + dense_state + reserve;
  const Bytes per_batch = activations + transient + exchange_buffers;
  std::string text = fmt::format("needs {:.1f} GB of {:.1f} GB a device", total.value * 1e-9, capacity.value * 1e-9);
  if (reserve > capacity) {
    text += fmt::format("; reserve_bytes alone is {:.1f} GB", reserve.value * 1e-9);
  } else if (fixed < capacity && per_batch.value > 0) {
    const double percent = 100 * ((capacity - fixed) / per_batch);
    text += percent >= 1 ? fmt::format("; a local batch of {:.0f} % of this one fits", std::floor(percent))
                         : fmt::format("; a local batch {:.0f} times smaller fits", std::ceil(100 / percent));
  } else if (tables + table_state > capacity - (fixed - tables - table_state)) {
    const double sharded = (tables + table_state).value * cluster.devices;
    const double room = (capacity - (fixed - tables - table_state)).value;
    if (room <= 0) {
      return text + fmt::format(
                        "; what is not tables needs {:.1f} GB alone: shard the dense parameters "
                        "(dense_parallelism) or reserve less",
                        (fixed - tables - table_state).value * 1e-9);
    }
    const char* host = "fewer rows";
    if (sharded / cluster.nodes() <= host_capacity.value) {
      host = "the largest tables in host memory (embedding.host_tables_min_bytes)";
    } else if (host_capacity > Bytes(0)) {
      host = "fewer rows: the nodes' host memory does not hold them either";
    }
    text += fmt::format("; tables and their state alone need about {:.0f} such devices, narrower rows, or {}",
                        std::ceil(sharded / room), host);
  }
  return text;
}

}  // namespace portolan
