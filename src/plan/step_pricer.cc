#include "plan/step_pricer.h"

#include <algorithm>
#include <optional>

#include "plan/placement_dual_bound.h"
#include "plan/placement_polish.h"

namespace portolan {
namespace {

Recipe MicroBatch(const Recipe& recipe, const Cluster& cluster) {
  Recipe micro = recipe;
  if (recipe.accumulation_steps > 1) {
    micro.global_batch =
        std::max<int64_t>(cluster.devices, recipe.GlobalBatch(cluster.devices) / recipe.accumulation_steps);
    micro.local_batch = 0;
  }
  return micro;
}

// Differences for the slopes of the step, as shares of the part.
constexpr double kLargeDifference = 0.5;
constexpr double kSmallDifference = 0.05;
constexpr size_t kFewTables = 100;  // up to it, both slopes are tried and the end is polished
constexpr size_t kPairs = 12;       // tables: pairs of splits are tried too
// What hides behind other work still weighs this much of its own time, so that it stays balanced.
constexpr double kLeastWeight = 0.02;
constexpr int kImprovements = 4;
// A search of more tables than that ends when its step is so little above the lower bound; one over many tables and
// devices, which takes long from other starts, earlier.
constexpr double kSmallGap = 0.005, kLargeGap = 0.03;
constexpr double kLargeSize = 5e4;  // tables x devices
// Steps of placements of one kind up to which they are improved by splits of all kinds too.
constexpr double kNear = 1.1;

}  // namespace

StepPricer::StepPricer(const Model& model, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants)
    : model_(model),
      cluster_(cluster),
      constants_(constants),
      steps_(recipe.accumulation_steps),
      micro_(MicroBatch(recipe, cluster)),
      group_recipe_(GroupRecipe(micro_)),
      scopes_(micro_, cluster),
      shards_(model, group_recipe_, scopes_.group()) {}

Bytes StepPricer::FreeForTables() const {
  return std::max(Bytes(0), cluster_.accelerator.hbm - MemoryBesidesTables(model_, micro_, cluster_));
}

Timeline StepPricer::Run(const EmbeddingWork& work, const StepGraph& graph) const {
  Timeline timeline = RunTimeline(graph, micro_, cluster_, constants_);
  if (steps_ == 1) return timeline;
  // All micro-batches but the last are without the dense reduction and optimizer.
  const StepGraph part = BuildStepGraph(model_, micro_, scopes_, work, StepPart::kAccumulate, &gemms_);
  const Timeline one = RunTimeline(part, micro_, cluster_, constants_);
  const double times = static_cast<double>(steps_ - 1);
  timeline.step += times * one.step;
  for (size_t c = 0; c < timeline.busy.size(); ++c) timeline.busy[c] += times * one.busy[c];
  for (const ExposedTerm& term : one.exposed) {
    const auto found = std::find_if(timeline.exposed.begin(), timeline.exposed.end(),
                                    [&term](const ExposedTerm& other) { return other.name == term.name; });
    if (found != timeline.exposed.end()) {
      found->time += times * term.time;
    } else {
      timeline.exposed.push_back({term.name, times * term.time});
    }
  }
  return timeline;
}

PlacementWeights StepPricer::WeightsAt(const EmbeddingWork& work, Seconds step, double difference) const {
  PlacementWeights weights;
  const auto slope = [&](double amount, const std::function<void(EmbeddingWork&)>& grow) {
    EmbeddingWork more = work;
    grow(more);
    return amount > 0 ? std::max(0.0, (StepOf(more) - step).value) / (difference * amount) : 0.0;
  };
  const auto kernel = [&](Estimate EmbeddingWork::*part) {
    const Seconds time = (work.*part).total - (work.*part).launch;
    return std::max(kLeastWeight,
                    slope(time.value, [&](EmbeddingWork& more) { (more.*part).total += difference * time; }));
  };
  weights.forward = kernel(&EmbeddingWork::forward);
  weights.sort = work.index_sort.total > Seconds(0) ? kernel(&EmbeddingWork::index_sort) : kLeastWeight;
  weights.update = kernel(&EmbeddingWork::backward);
  const double element = SizeOf(recipe().embedding_forward_comm).value + SizeOf(recipe().embedding_backward_comm).value;
  const bool crosses_nodes = cluster().nodes() > 1;
  const BytesPerSecond link = crosses_nodes ? cluster().scale_out.device_peak : cluster().scale_up.device_peak;
  const double least = link.value > 0 ? kLeastWeight * element / link.value : 0.0;
  const double exchanged = work.forward_exchange_bytes / SizeOf(recipe().embedding_forward_comm).value;
  // A part that is absent is priced at the size at which it would replace the other.
  const double per_node = std::min(cluster().devices, cluster().devices_per_node);
  const double exchange = difference * (exchanged > 0 ? exchanged : work.node_reduce_elements / per_node);
  const double reduction = difference * (work.node_reduce_elements > 0 ? work.node_reduce_elements
                                         : crosses_nodes               ? exchanged * per_node
                                                                       : 0.0);
  const auto per_element = [&](double elements, const std::function<void(EmbeddingWork&)>& grow) {
    EmbeddingWork more = work;
    grow(more);
    return elements > 0 ? std::max(least, (StepOf(more) - step).value / elements) : least;
  };
  weights.exchanged_element = per_element(exchange, [&](EmbeddingWork& more) {
    more.forward_exchange_bytes += exchange * SizeOf(recipe().embedding_forward_comm).value;
    more.backward_exchange_bytes += exchange * SizeOf(recipe().embedding_backward_comm).value;
  });
  weights.reduced_element =
      per_element(reduction, [&](EmbeddingWork& more) { more.node_reduce_elements += reduction; });
  return weights;
}

Placement StepPricer::PlaceAllBy(Sharding sharding, const Placement& like) const {
  Recipe all = recipe();
  all.sharding = sharding;
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    if (like.tables[t].sharding != Sharding::kDataParallel) continue;
    all.tables[model_.tables[t].name] = {Sharding::kDataParallel, 1};
  }
  return PlaceTables(model_, all, cluster(), FreeForTables());
}

Placement StepPricer::Place() {
  PricedPlacement best(PlaceTables(model_, recipe(), cluster(), FreeForTables()));
  if (recipe().balance == Balance::kGreedy || cluster().devices == 1) return best.placement;
  Price(best);
  const bool few = model_.tables.size() <= kFewTables;
  const Seconds bound = few ? Seconds(0) : ImproveFromBound(best);
  const double size = static_cast<double>(model_.tables.size()) * cluster().devices;
  if (best.fits && best.step <= (1 + (size > kLargeSize ? kLargeGap : kSmallGap)) * bound) return best.placement;
  if (cluster().nodes() > 1 && recipe().sharding == Sharding::kAuto) {
    // Whole tables on single devices, exchanged flat, and tables in whole nodes. A step without a reduction inside
    // nodes has two collectives less each way, one without a flat exchange one less, which moves of single tables never
    // see: searched apart.
    PricedPlacement flat(PlaceAllBy(Sharding::kTable, best.placement));
    PricedPlacement nodes(PlaceAllBy(Sharding::kTableRow, best.placement));
    Price(flat);
    Price(nodes);
    if (flat.Beats(best)) best = flat;
    Improve(best, SearchSplits::kAll);
    Improve(flat, SearchSplits::kFlat);
    Improve(nodes, SearchSplits::kNodes);
    PricedPlacement& apart = flat.Beats(nodes) ? flat : nodes;
    if (apart.step < kNear * best.step) Improve(apart, SearchSplits::kAll);
    if (apart.Beats(best)) best = std::move(apart);
  } else {
    Improve(best, SearchSplits::kAll);
  }
  if (few) {
    PolishPlacement(*this, model_.tables.size() <= kPairs ? PolishSplits::kPairs : PolishSplits::kSingle, &best);
    TryAllPlacements(*this, &best);
  }
  return best.placement;
}

Seconds StepPricer::ImproveFromBound(PricedPlacement& best) {
  const BoundProblem problem = MakeBoundProblem(*this, best.placement);
  const SplitBound bound = PlacementDualBound(*this, problem, best.work);
  if (bound.splits.empty()) return bound.bound;
  Placement start = best.placement;
  size_t next = 0;
  for (size_t t = 0; t < start.tables.size(); ++t) {
    if (!shards_.Used(t)) continue;
    const TableSplit& split = bound.splits[next++];
    TablePlacement& place = start.tables[t];
    if (place.ranks.empty()) continue;
    place = {split.sharding, split.row_shards, split.column_shards, {}};
    for (int rank = 0; rank < split.shards(); ++rank) place.ranks.push_back(rank);
  }
  // The weights are those at even loads, not those of one start.
  const EmbeddingWork even = MeasureEmbeddings(shards_, start, RankBalance::kMean);
  const PlacementWeights weights = WeightsAt(even, StepOf(even), kSmallDifference);
  for (Placement& placement :
       ImprovePlacement(shards_, start, weights, best.limit, SearchStarts::kDealt, SearchSplits::kAll)) {
    PricedPlacement dealt(std::move(placement));
    Price(dealt);
    if (dealt.Beats(best)) best = std::move(dealt);
  }
  return bound.bound;
}

void StepPricer::Improve(PricedPlacement& best, SearchSplits splits) {
  // Slopes over a large and a small difference see work that hides differently.
  const bool few = model_.tables.size() <= kFewTables;
  std::optional<PricedPlacement> evenest;  // the one that would be shortest if every rank had the mean of its splits
  Seconds least_even;
  const auto take = [&](Placement placement) {
    PricedPlacement next(std::move(placement));
    Price(next);
    const Seconds even = StepOf(MeasureEmbeddings(shards_, next.placement, RankBalance::kMean));
    if (next.fits && (!evenest || even < least_even)) {
      least_even = even;
      evenest = next;
    }
    if (next.Beats(best)) best = std::move(next);
  };
  for (int round = 0; round < kImprovements; ++round) {
    const PricedPlacement from = best;
    for (const double difference : {kLargeDifference, kSmallDifference}) {
      const SearchStarts starts = few && round == 0 ? SearchStarts::kAllFamilies
                                  : round == 0      ? SearchStarts::kAfresh
                                                    : SearchStarts::kHere;
      const PlacementWeights weights = WeightsAt(from.work, from.step, difference);
      for (Placement& placement : ImprovePlacement(shards_, from.placement, weights, from.limit, starts, splits)) {
        take(std::move(placement));
      }
      if (starts == SearchStarts::kAfresh && evenest && evenest->step > best.step) {
        // Good splits badly dealt.
        const PricedPlacement uneven = *evenest;
        for (Placement& placement :
             ImprovePlacement(shards_, uneven.placement, WeightsAt(uneven.work, uneven.step, difference), uneven.limit,
                              SearchStarts::kHere, splits)) {
          take(std::move(placement));
        }
      }
      if (!few) break;
    }
    if (round > 0 && best.step >= from.step) break;
  }
}

void StepPricer::Price(PricedPlacement& candidate) {
  candidate.work = Measure(candidate.placement);
  const StepGraph graph = Graph(candidate.work);
  candidate.step = Run(candidate.work, graph).step;
  const MemoryEstimate memory = Memory(candidate.placement, graph);
  candidate.fits = memory.Fits();
  candidate.limit = std::max(Bytes(0), memory.capacity - (memory.total - memory.tables - memory.table_state));
}

}  // namespace portolan
