#include "plan/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>

#include "plan/host_tables.h"

namespace portolan {
namespace {

// Relative price of one exchanged pooled element against one gathered element, in bytes x rate: a shard costs its
// lookups plus this many per pooled output (HugeCTR's MLPerf planner weighs a shard the same way:
// mlcommons/training_results_v5.0, hugectr/sharding/planner.py).
double ExchangeWeight(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  (void)model;
  if (cluster.devices == 1) return 0;
  const bool crosses_nodes = cluster.nodes() > 1;
  const BytesPerSecond link = crosses_nodes ? cluster.scale_out.device_peak : cluster.scale_up.device_peak;
  if (link.value <= 0) return 0;
  // Forward and backward exchange against the row reads of the lookup and, in backward, about three times as much: the
  // gradient of each lookup, and rows and state read and written (8 bytes of HBM to 2 of link in NVIDIA's planner).
  const double gathered = SizeOf(recipe.embedding_row).value * 4;
  const double exchanged = SizeOf(recipe.embedding_forward_comm).value + SizeOf(recipe.embedding_backward_comm).value;
  return (cluster.accelerator.hbm_sustained / link) * exchanged / gathered;
}

struct Shard {
  int table = 0;
  double gather = 0;    // dim x lookups
  double exchange = 0;  // dim x pooled outputs x weight
  double bytes = 0;
  double load() const { return gather + exchange; }
};

// Rounds of halving the hottest shard.
constexpr int kSplitAttempts = 20;

// Smallest power of two that brings the bytes of one shard under the limit.
int SplitCount(double bytes, double bytes_limit, int max_shards) {
  int shards = 1;
  while (2 * shards <= max_shards && bytes / shards > bytes_limit) shards *= 2;
  return shards;
}

// Load and bytes of every device, and of every node: a shard goes to one device or, split by row, to all of one node.
enum class Unit { kDevice, kNode };
class Bins {
 public:
  Bins(int nodes, int per_node, double capacity) : per_node_(per_node), capacity_(capacity) {
    devices_.assign(static_cast<size_t>(nodes * per_node), {});
    nodes_.assign(static_cast<size_t>(nodes), {});
  }

  // The least loaded device (or node) with room that does not hold a shard of this table yet; else the least filled
  // one.
  int Take(const Shard& shard, Unit unit, const std::vector<int>& taken) {
    const std::vector<Bin>& bins = unit == Unit::kNode ? nodes_ : devices_;
    const double capacity = unit == Unit::kNode ? capacity_ * per_node_ : capacity_;
    int best = -1, emptiest = -1;
    for (int i = 0; i < static_cast<int>(bins.size()); ++i) {
      if (std::find(taken.begin(), taken.end(), i) != taken.end()) continue;
      const Bin& bin = bins[static_cast<size_t>(i)];
      if (emptiest < 0 || bin.bytes < bins[static_cast<size_t>(emptiest)].bytes) emptiest = i;
      if (bin.bytes + shard.bytes > capacity) continue;
      if (best < 0 || bin.load() < bins[static_cast<size_t>(best)].load()) best = i;
    }
    if (best < 0) best = emptiest < 0 ? 0 : emptiest;
    const int first = unit == Unit::kNode ? best * per_node_ : best;
    const int count = unit == Unit::kNode ? per_node_ : 1;
    for (int d = first; d < first + count; ++d) devices_[static_cast<size_t>(d)].Add(shard, 1.0 / count);
    nodes_[static_cast<size_t>(first / per_node_)].Add(shard, 1.0);
    return best;
  }

  // Lookups and exchange are two phases, and each waits for the device that has most of it.
  double Slowest() const {
    double gather = 0, exchange = 0;
    for (const Bin& device : devices_) {
      gather = std::max(gather, device.gather);
      exchange = std::max(exchange, device.exchange);
    }
    return gather + exchange;
  }

 private:
  struct Bin {
    double gather = 0, exchange = 0, bytes = 0;
    double load() const { return gather + exchange; }
    void Add(const Shard& shard, double share) {
      gather += shard.gather * share;
      exchange += shard.exchange * share;
      bytes += shard.bytes * share;
    }
  };
  std::vector<Bin> devices_, nodes_;
  int per_node_;
  double capacity_;
};

}  // namespace

std::vector<double> LookupsPerTable(const Model& model) {
  std::vector<double> lookups(model.tables.size(), 0.0);
  for (const Feature& feature : model.features) lookups[static_cast<size_t>(feature.table)] += feature.lookups;
  return lookups;
}

std::vector<double> OutputsPerTable(const Model& model) {
  std::vector<double> outputs(model.tables.size(), 0.0);
  for (const Feature& feature : model.features) {
    const bool pooled = model.groups[static_cast<size_t>(feature.group)].pooling == Pooling::kSum;
    outputs[static_cast<size_t>(feature.table)] += pooled ? 1.0 : feature.lookups;
  }
  return outputs;
}

Placement PlaceTables(const Model& model, const Recipe& recipe, const Cluster& cluster, Bytes memory_per_device) {
  const size_t table_count = model.tables.size();
  const int devices = cluster.devices;
  const std::vector<double> lookups = LookupsPerTable(model);
  const std::vector<double> outputs = OutputsPerTable(model);
  const double row_bytes = SizeOf(recipe.embedding_row).value;
  const double weight = ExchangeWeight(model, recipe, cluster);

  std::vector<double> weight_bytes(table_count), state_bytes(table_count);
  for (size_t t = 0; t < table_count; ++t) {
    const Table& table = model.tables[t];
    const double rows = DeviceRows(model, recipe, t);
    weight_bytes[t] = rows * static_cast<double>(table.dim) * row_bytes;
    state_bytes[t] = rows * RowStateBytes(model, recipe, t).value;
  }

  Placement placement;
  placement.tables.resize(table_count);
  placement.ranks.resize(static_cast<size_t>(devices));
  std::vector<bool> open(table_count, false);
  for (size_t t = 0; t < table_count; ++t) {
    TablePlacement& place = placement.tables[t];
    place.sharding = recipe.sharding;
    int column_shards = 1;
    const auto override_entry = recipe.tables.find(model.tables[t].name);
    if (override_entry != recipe.tables.end()) {
      place.sharding = override_entry->second.sharding;
      column_shards = override_entry->second.shards;
    }
    if (devices == 1) {
      place.sharding = Sharding::kDataParallel;
    } else if (place.sharding == Sharding::kAuto &&
               weight_bytes[t] + state_bytes[t] <= recipe.data_parallel_max.value && !InHostMemory(model, recipe, t)) {
      place.sharding = Sharding::kDataParallel;
    }
    if (place.sharding == Sharding::kColumn) {
      place.column_shards = static_cast<int>(std::clamp<int64_t>(column_shards > 1 ? column_shards : devices, 1,
                                                                 std::min<int64_t>(devices, model.tables[t].dim)));
    }
    if (place.sharding == Sharding::kRow) place.row_shards = devices;
    open[t] = place.sharding != Sharding::kDataParallel && place.sharding != Sharding::kRow;
  }

  // On several nodes the slower link decides: tables dealt to nodes and split by row inside them send one partial sum a
  // sample and node through the NICs instead of one a shard.
  const int per_node = std::min(devices, cluster.devices_per_node);
  const int nodes = devices / per_node;
  const bool by_node = nodes > 1 && per_node > 1 && recipe.sharding == Sharding::kAuto &&
                       cluster.scale_out.device_peak < cluster.scale_up.device_peak;
  const auto unit_of = [&](size_t t) {
    const Sharding sharding = placement.tables[t].sharding;
    return sharding == Sharding::kTableRow || (sharding == Sharding::kAuto && by_node) ? Unit::kNode : Unit::kDevice;
  };

  // Shards of kAuto tables: as few as their size allows, then the hottest shard is halved as long as that shortens
  // the slowest lookups and the slowest exchange together.
  std::vector<int> counts(table_count, 0);
  for (size_t t = 0; t < table_count; ++t) {
    if (!open[t]) continue;
    const bool node = unit_of(t) == Unit::kNode;
    counts[t] = placement.tables[t].sharding == Sharding::kAuto
                    ? SplitCount(weight_bytes[t] + state_bytes[t],
                                 memory_per_device.value * (node ? per_node : 1) * 0.5, node ? nodes : devices)
                    : placement.tables[t].column_shards;
  }
  const auto shard_of = [&](size_t t, int count) {
    const double dim = static_cast<double>(model.tables[t].dim);
    const double senders = placement.tables[t].sharding == Sharding::kAuto ? 1 : count;  // row shards send partial sums
    return Shard{static_cast<int>(t), dim * lookups[t] / count, dim * weight * outputs[t] / senders,
                 (weight_bytes[t] + state_bytes[t]) / count};
  };
  const auto deal = [&](const std::vector<int>& shard_counts, std::vector<std::vector<int>>* places) {
    std::vector<Shard> shards;
    for (size_t t = 0; t < table_count; ++t) {
      for (int s = 0; s < shard_counts[t]; ++s) {
        shards.push_back(shard_of(t, shard_counts[t]));
      }
    }
    std::stable_sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) { return a.load() > b.load(); });
    Bins bins(nodes, per_node, memory_per_device.value);
    places->assign(table_count, {});
    for (const Shard& shard : shards) {
      std::vector<int>& taken = (*places)[static_cast<size_t>(shard.table)];
      taken.push_back(bins.Take(shard, unit_of(static_cast<size_t>(shard.table)), taken));
    }
    return bins.Slowest();
  };
  std::vector<std::vector<int>> best_places, places;
  double best = deal(counts, &best_places);
  std::vector<int> trial = counts;
  for (int attempt = 0; attempt < kSplitAttempts; ++attempt) {
    int hottest = -1;
    for (size_t t = 0; t < table_count; ++t) {
      if (!open[t] || placement.tables[t].sharding != Sharding::kAuto) continue;
      if (2 * trial[t] > (unit_of(t) == Unit::kNode ? nodes : devices)) continue;
      if (hottest < 0 || shard_of(t, trial[t]).load() > shard_of(static_cast<size_t>(hottest), trial[hottest]).load()) {
        hottest = static_cast<int>(t);
      }
    }
    if (hottest < 0) break;
    trial[static_cast<size_t>(hottest)] *= 2;
    const double slowest = deal(trial, &places);
    if (slowest >= best) continue;
    best = slowest;
    best_places = places;
    counts = trial;
  }
  for (size_t t = 0; t < table_count; ++t) {
    TablePlacement& place = placement.tables[t];
    if (!open[t]) continue;
    if (unit_of(t) == Unit::kNode) {
      for (const int node : best_places[t]) {
        for (int d = 0; d < per_node; ++d) place.ranks.push_back(node * per_node + d);
      }
      place.row_shards = static_cast<int>(place.ranks.size());
      place.sharding = Sharding::kTableRow;
      continue;
    }
    place.ranks = best_places[t];
    if (place.sharding != Sharding::kAuto) continue;
    place.row_shards = counts[t];
    place.sharding = place.row_shards > 1 ? Sharding::kRow : Sharding::kTable;
  }

  SumRankLoads(model, recipe, &placement);
  return placement;
}

void SumRankLoads(const Model& model, const Recipe& recipe, Placement* placement) {
  std::fill(placement->ranks.begin(), placement->ranks.end(), RankLoad{});
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const Table& table = model.tables[t];
    const TablePlacement& place = placement->tables[t];
    const double parts = place.sharding == Sharding::kDataParallel ? 1.0 : place.row_shards * place.column_shards;
    const double rows = DeviceRows(model, recipe, t);
    const double weight_bytes = rows * static_cast<double>(table.dim) * SizeOf(recipe.embedding_row).value;
    const double state_bytes = rows * RowStateBytes(model, recipe, t).value;
    const auto add = [&](RankLoad& rank) {
      rank.table_bytes += weight_bytes / parts;
      rank.state_bytes += state_bytes / parts;
    };
    if (place.ranks.empty()) {
      for (RankLoad& rank : placement->ranks) add(rank);
    } else {
      for (const int rank : place.ranks) add(placement->ranks[static_cast<size_t>(rank)]);
    }
  }
}

}  // namespace portolan
