// Compares ways to deal embedding tables to devices on generated table sets, by the estimated step of this library:
// Portolan's searched placement, greedy by size, greedy by lookups, and a rating in the manner of TorchRec's planner.
// Prints a Markdown table. Run in the source folder: sharding_bench [SEEDS [DEVICES [TABLES]]], all sizes where none
// are given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plan/placement_bound.h"
#include "plan/step_pricer.h"

namespace portolan {
namespace {

// `count` tables: rows log-uniform in 10 to 1e9 (scaled down until all, with their optimizer state, fit in half the
// memory), dims 8 to 256, 1 to 200 lookups (log-uniform), Zipf exponents 0 to 1.3.
Model GeneratedTables(unsigned seed, int count, const Cluster& cluster) {
  std::mt19937_64 random(seed);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::string text = "model: generated\ndense_features: 512\ntables:\n";
  std::vector<double> rows(static_cast<size_t>(count));
  std::vector<int> dims(rows.size());
  double bytes = 0;
  for (size_t t = 0; t < rows.size(); ++t) {
    rows[t] = std::floor(std::pow(10.0, 1 + 8 * uniform()));
    dims[t] = 8 << static_cast<int>(6 * uniform());
    bytes += rows[t] * (dims[t] * 4 + EmbeddingStateBytesPerRow(Model().embedding_optimizer, dims[t]).value);
  }
  const double room = 0.5 * cluster.accelerator.hbm.value * cluster.devices;
  const double scale = std::min(1.0, room / bytes);
  for (size_t t = 0; t < rows.size(); ++t) {
    text +=
        fmt::format("  - {{name: t{}, rows: {:.0f}, dim: {}, lookups: {:.0f}, zipf_exponent: {:.2f}}}\n", t,
                    std::max(10.0, rows[t] * scale), dims[t], std::round(std::pow(200.0, uniform())), 1.3 * uniform());
  }
  text +=
      "blocks:\n"
      "  - {name: bottom, type: mlp, input: dense, widths: [512, 256]}\n"
      "  - {name: features, type: concat, inputs: [bottom, embeddings]}\n"
      "  - {name: top, type: mlp, input: features, widths: [1024, 512, 256, 1]}\n";
  return ReadModel(*YamlValue::Parse(text, "generated")).value();
}

Recipe BenchRecipe() {
  Recipe recipe = DefaultRecipe();
  recipe.launch = Launch::kGraph;
  recipe.embedding_forward_comm = DType::kBf16;
  recipe.embedding_backward_comm = DType::kBf16;
  return recipe;
}

struct Shard {
  size_t table = 0;
  double load = 0, bytes = 0;
};

// The tables that the recipe replicates, and what the others are.
struct Problem {
  StepPricer* pricer;
  Placement start;  // replicated tables; the others to be dealt
  std::vector<size_t> open;
  std::vector<double> lookups, outputs, bytes;
  double memory = 0;

  const Cluster& cluster() const { return pricer->cluster(); }
  const Table& table(size_t t) const { return pricer->model().tables[t]; }
};

Problem MakeProblem(StepPricer& pricer, const Placement& greedy) {
  Problem problem;
  problem.pricer = &pricer;
  problem.start = greedy;
  const Model& model = pricer.model();
  problem.lookups = LookupsPerTable(model);
  problem.outputs = OutputsPerTable(model);
  problem.memory = 0.97 * pricer.FreeForTables().value;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    problem.bytes.push_back(model.tables[t].rows *
                            (4 * static_cast<double>(model.tables[t].dim) +
                             EmbeddingStateBytesPerRow(model.embedding_optimizer, model.tables[t].dim).value));
    if (greedy.tables[t].sharding != Sharding::kDataParallel) problem.open.push_back(t);
  }
  return problem;
}

// Deals shards, largest load first, to the least loaded rank with room; split[t] gives each open table's shards.
Placement Deal(const Problem& problem, const std::vector<TableSplit>& splits, const std::vector<double>& shard_loads) {
  const int devices = problem.cluster().devices;
  std::vector<Shard> shards;
  for (size_t i = 0; i < problem.open.size(); ++i) {
    for (int s = 0; s < splits[i].shards(); ++s) {
      shards.push_back({i, shard_loads[i], problem.bytes[problem.open[i]] / splits[i].shards()});
    }
  }
  std::stable_sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) { return a.load > b.load; });
  std::vector<double> load(static_cast<size_t>(devices), 0.0), filled(load);
  Placement placement = problem.start;
  for (const size_t t : problem.open) placement.tables[t].ranks.clear();
  for (const Shard& shard : shards) {
    TablePlacement& place = placement.tables[problem.open[shard.table]];
    place.sharding = splits[shard.table].sharding;
    place.row_shards = splits[shard.table].row_shards;
    place.column_shards = splits[shard.table].column_shards;
    int best = -1, emptiest = -1;
    for (int r = 0; r < devices; ++r) {
      const size_t rank = static_cast<size_t>(r);
      if (std::find(place.ranks.begin(), place.ranks.end(), r) != place.ranks.end()) continue;
      if (emptiest < 0 || filled[rank] < filled[static_cast<size_t>(emptiest)]) emptiest = r;
      if (filled[rank] + shard.bytes > problem.memory) continue;
      if (best < 0 || load[rank] < load[static_cast<size_t>(best)]) best = r;
    }
    if (best < 0) best = emptiest;
    load[static_cast<size_t>(best)] += shard.load;
    filled[static_cast<size_t>(best)] += shard.bytes;
    place.ranks.push_back(best);
  }
  SumRankLoads(problem.pricer->model(), problem.pricer->recipe(), &placement);
  return placement;
}

// Whole tables, by row only where half a device's memory does not hold one.
Placement GreedyBy(const Problem& problem, const std::vector<double>& load) {
  std::vector<TableSplit> splits;
  std::vector<double> loads;
  for (const size_t t : problem.open) {
    int count = 1;
    while (2 * count <= problem.cluster().devices && problem.bytes[t] / count > 0.5 * problem.memory) count *= 2;
    splits.push_back({count > 1 ? Sharding::kRow : Sharding::kTable, count, 1});
    loads.push_back(load[t] / count);
  }
  return Deal(problem, splits, loads);
}

// A rating in the manner of TorchRec's planner: every shard costs (indices + rows read + outputs) over HBM bandwidth,
// forward and twice that in backward, and its outputs over the link, both ways; table-wise, column-wise (halves and
// quarters) and row-wise over all devices are its options. Starts from each table's cheapest shards, deals them by
// rating, then tries the next option of the table that leads the fullest rank, and keeps the best rating seen.
Placement Rated(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  const double hbm = cluster.accelerator.hbm_sustained.value;
  const double link = (cluster.nodes() > 1 ? cluster.scale_out.device_peak : cluster.scale_up.device_peak).value;
  const double batch = static_cast<double>(problem.pricer->recipe().GlobalBatch(cluster.devices));
  const auto rating = [&](size_t t, const TableSplit& split) {
    const double dim = static_cast<double>(problem.table(t).dim) / split.column_shards;
    const double lookups = batch * problem.lookups[t] / split.row_shards;
    const double outputs = batch * problem.outputs[t] * dim;
    const double memory = (lookups * 8 + lookups * dim * 4 + outputs * 4) / hbm;
    return 3 * memory + 2 * outputs * 2 / link;
  };
  std::vector<std::vector<TableSplit>> options;
  for (const size_t t : problem.open) {
    std::vector<TableSplit> list;
    for (const int columns : {1, 2, 4}) {
      if (problem.table(t).dim % columns || problem.table(t).dim / columns < (columns > 1 ? 32 : 1)) continue;
      if (columns > cluster.devices) continue;
      list.push_back({columns > 1 ? Sharding::kColumn : Sharding::kTable, 1, columns});
    }
    if (problem.table(t).rows >= cluster.devices) list.push_back({Sharding::kRow, cluster.devices, 1});
    std::erase_if(list, [&](const TableSplit& split) {
      return problem.bytes[t] / split.shards() > problem.memory && split.shards() < cluster.devices;
    });
    std::stable_sort(list.begin(), list.end(), [&](const TableSplit& a, const TableSplit& b) {
      return a.shards() * rating(t, a) < b.shards() * rating(t, b);
    });
    options.push_back(std::move(list));
  }
  std::vector<size_t> choice(options.size(), 0);
  Placement best;
  double least = 1e30;
  for (int proposal = 0; proposal < 200; ++proposal) {
    std::vector<TableSplit> splits;
    std::vector<double> loads;
    for (size_t i = 0; i < options.size(); ++i) {
      splits.push_back(options[i][choice[i]]);
      loads.push_back(rating(problem.open[i], splits.back()));
    }
    const Placement placement = Deal(problem, splits, loads);
    std::vector<double> ranks(static_cast<size_t>(cluster.devices), 0.0);
    for (size_t i = 0; i < options.size(); ++i) {
      for (const int rank : placement.tables[problem.open[i]].ranks) ranks[static_cast<size_t>(rank)] += loads[i];
    }
    const size_t fullest = static_cast<size_t>(std::max_element(ranks.begin(), ranks.end()) - ranks.begin());
    if (ranks[fullest] < least) {
      least = ranks[fullest];
      best = placement;
    }
    size_t leader = options.size();
    for (size_t i = 0; i < options.size(); ++i) {
      const std::vector<int>& at = placement.tables[problem.open[i]].ranks;
      if (std::find(at.begin(), at.end(), static_cast<int>(fullest)) == at.end()) continue;
      if (choice[i] + 1 >= options[i].size()) continue;
      if (leader == options.size() || loads[i] > loads[leader]) leader = i;
    }
    if (leader == options.size()) break;
    ++choice[leader];
  }
  return best;
}

int Main(int seeds, int only_devices, int only_tables) {
  const auto catalogue = Catalogue::Load({"data"});
  if (!catalogue) {
    fmt::print(stderr, "{}\n", FormatError(catalogue.error()));
    return 1;
  }
  const StepConstants constants = SharedStepConstants();
  fmt::print(
      "| devices | tables | searched ms | gap to bound | of it uneven | greedy by size | by lookups | rated | greedy "
      "recipe | search "
      "s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<std::vector<double>> ratios(4);
  double worst_gap = 0;
  for (const char* chip : {"mi350x", "b200"}) {
    for (const int devices : {8, 32, 128}) {
      if (only_devices > 0 && devices != only_devices) continue;
      const Cluster cluster = *catalogue->ParseCluster(fmt::format("{}x{}", devices, chip));
      for (const int tables : {50, 200, 1000}) {
        if (only_tables > 0 && tables != only_tables) continue;
        for (int seed = 0; seed < seeds; ++seed) {
          const Model model = GeneratedTables(static_cast<unsigned>(1000 * tables + seed), tables, cluster);
          Recipe recipe = BenchRecipe();
          StepPricer greedy(model, recipe, cluster, constants);
          const Placement base = greedy.Place();
          const Problem problem = MakeProblem(greedy, base);
          std::vector<double> lookups = problem.lookups;
          for (size_t t = 0; t < lookups.size(); ++t) lookups[t] *= static_cast<double>(model.tables[t].dim);
          const auto step = [&](const Placement& placement) { return greedy.StepOf(greedy.Measure(placement)).value; };
          recipe.balance = Balance::kSearched;
          const auto begin = std::chrono::steady_clock::now();
          StepPricer searched(model, recipe, cluster, constants);
          const Placement placement = searched.Place();
          const double ours = step(placement);
          const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          // The same splits, were every rank to have the mean.
          const double even = greedy.StepOf(MeasureEmbeddings(greedy.shards(), placement, RankBalance::kMean)).value;
          const double bound = PlacementBound(model, recipe, cluster, constants).value;
          worst_gap = std::max(worst_gap, ours / bound - 1);
          const double others[] = {step(GreedyBy(problem, problem.bytes)), step(GreedyBy(problem, lookups)),
                                   step(Rated(problem)), step(base)};
          fmt::print("| {}x{} | {} | {:.3f} | {:.1f} % | {:.1f} % |", devices, chip, tables, 1e3 * ours,
                     100 * (ours / bound - 1), 100 * (ours - even) / bound);
          for (size_t k = 0; k < 4; ++k) {
            ratios[k].push_back(others[k] / ours);
            fmt::print(" {:.3f}x |", others[k] / ours);
          }
          fmt::print(" {:.2f} |\n", seconds);
          std::fflush(stdout);
        }
      }
    }
  }
  const char* const names[] = {"greedy by size", "greedy by lookups", "rated", "greedy recipe"};
  fmt::print("\n| against | geomean | least | most |\n|---|---|---|---|\n");
  for (size_t k = 0; k < 4; ++k) {
    double log_sum = 0;
    for (const double ratio : ratios[k]) log_sum += std::log(ratio);
    fmt::print(
        "| {} | {:.3f}x | {:.3f}x | {:.3f}x |\n", names[k], std::exp(log_sum / static_cast<double>(ratios[k].size())),
        *std::min_element(ratios[k].begin(), ratios[k].end()), *std::max_element(ratios[k].begin(), ratios[k].end()));
  }
  fmt::print("\nWorst gap to the bound {:.1f} %.\n", 100 * worst_gap);
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  return portolan::Main(std::max(1, number(1)), number(2), number(3));
}
