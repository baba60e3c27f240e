#include "plan/bound_options.h"

#include <algorithm>
#include <functional>

#include "plan/host_tables.h"

namespace portolan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Dominates(const BoundOption& a, const BoundOption& b) {
  for (size_t c = 0; c < kKernelParts; ++c) {
    if (a.mean[c] > b.mean[c] || a.launch[c] > b.launch[c]) return false;
    if (a.shard[c] * a.first > b.shard[c] * b.first || a.shard[c] * a.other > b.shard[c] * b.other) return false;
  }
  return a.on_nodes == b.on_nodes && a.shards <= b.shards && a.received <= b.received &&
         a.sent * a.first <= b.sent * b.first && a.sent * a.other <= b.sent * b.other && a.reduced <= b.reduced &&
         a.unpooled_mean <= b.unpooled_mean && a.tables_mean <= b.tables_mean;
}

std::vector<BoundOption> WithoutDominated(const std::vector<BoundOption>& options) {
  std::vector<BoundOption> kept;
  for (size_t i = 0; i < options.size(); ++i) {
    bool dominated = false;
    for (size_t j = 0; j < options.size() && !dominated; ++j) {
      dominated = i != j && Dominates(options[j], options[i]) && (!Dominates(options[i], options[j]) || j < i);
    }
    if (!dominated) kept.push_back(options[i]);
  }
  return kept;
}

BoundOption OptionOf(const ShardCost& cost, double shards, int devices) {
  BoundOption option;
  option.shards = shards;
  option.devices = devices;
  option.first = cost.first_factor;
  option.other = shards > 1 ? cost.other_factor : cost.first_factor;
  const std::array<const Estimate*, kKernelParts> kernels = {&cost.forward, &cost.sort, &cost.update};
  for (size_t c = 0; c < kKernelParts; ++c) {
    option.shard[c] = kernels[c]->total.value;
    option.mean[c] = kernels[c]->total.value * (option.first + (shards - 1) * option.other) / devices;
    option.launch[c] = kernels[c]->launch.value;
  }
  option.received = cost.received_elements;
  option.sent = cost.sent_elements;
  option.reduced = cost.reduced_elements;
  option.unpooled_mean = cost.unpooled_elements * (option.first + (shards - 1) * option.other) / devices;
  option.tables_mean = shards / devices;
  option.on_nodes = cost.reduced_elements > 0;
  return option;
}

}  // namespace

BoundProblem MakeBoundProblem(StepPricer& pricer, const Placement& greedy) {
  const Model& model = pricer.model();
  const Recipe& recipe = pricer.recipe();
  const int devices = pricer.cluster().devices;
  const double memory = pricer.FreeForTables().value;
  BoundProblem problem;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (!pricer.shards().Used(t)) continue;
    const TablePlacement& place = greedy.tables[t];
    const TableWork whole = pricer.shards().WorkOf(t, SplitOf(place));
    const KernelParts hot = {whole.hot_forward.total.value, 0, whole.hot_update.total.value};
    const bool everywhere = place.ranks.empty();
    std::vector<BoundOption> options;
    const double bytes = DeviceRows(model, recipe, t) * RowAndStateBytes(model, recipe, t).value;
    std::vector<TableSplit> splits = SplitOptions(model, recipe, pricer.cluster(), t, place);
    const auto fits = [&](const TableSplit& split) { return bytes / split.shards() <= memory * (1 + 1e-12); };
    if (!everywhere && std::any_of(splits.begin(), splits.end(), fits)) {
      splits.erase(std::remove_if(splits.begin(), splits.end(), std::not_fn(fits)), splits.end());
    }
    for (const TableSplit& split : splits) {
      options.push_back(OptionOf(pricer.shards().Price(t, split), everywhere ? devices : split.shards(), devices));
      options.back().split = split;
    }
    for (size_t c = 0; c < kKernelParts; ++c) {
      problem.base_mean[c] += hot[c];
      problem.base_least[c] += hot[c];
      if (!everywhere) continue;
      // One split; its kernels are every rank's.
      BoundOption& only = options.front();
      problem.base_mean[c] += only.mean[c];
      problem.base_least[c] += only.shard[c] * std::min(only.first, only.other);
      only.mean[c] = only.shard[c] = 0;
    }
    problem.tables.push_back(WithoutDominated(options));
  }
  return problem;
}

EmbeddingWork WorkOfParts(const StepPricer& pricer, const EmbeddingWork& fixed,
                          const std::vector<std::vector<BoundOption>>& tables, const KernelParts& parts,
                          double exchanged, double reduced) {
  KernelParts launch{};
  double table_count = 0, unpooled = 0;
  for (const auto& options : tables) {
    double least_tables = kInfinity, least_unpooled = kInfinity;
    KernelParts least = {kInfinity, kInfinity, kInfinity};
    for (const BoundOption& o : options) {
      for (size_t c = 0; c < kKernelParts; ++c) least[c] = std::min(least[c], o.launch[c]);
      least_tables = std::min(least_tables, o.tables_mean);
      least_unpooled = std::min(least_unpooled, o.unpooled_mean);
    }
    for (size_t c = 0; c < kKernelParts; ++c) launch[c] = std::max(launch[c], least[c]);
    table_count += least_tables;
    unpooled += least_unpooled;
  }
  const Recipe& recipe = pricer.recipe();
  EmbeddingWork work = fixed;
  work.kernels = recipe.table_kernels == TableKernels::kPerTable ? std::max(1.0, table_count) : 1.0;
  const std::array<Estimate*, kKernelParts> kernels = {&work.forward, &work.index_sort, &work.backward};
  for (size_t c = 0; c < kKernelParts; ++c) {
    *kernels[c] = {};
    kernels[c]->memory = Seconds(parts[c]);
    kernels[c]->launch = Seconds(work.kernels * launch[c]);
    kernels[c]->total = kernels[c]->memory + kernels[c]->launch;
  }
  work.forward_exchange_bytes = exchanged * SizeOf(recipe.embedding_forward_comm).value;
  work.backward_exchange_bytes = exchanged * SizeOf(recipe.embedding_backward_comm).value;
  work.node_reduce_elements = reduced;
  work.owner_unpooled_elements = unpooled;
  return work;
}

}  // namespace portolan
