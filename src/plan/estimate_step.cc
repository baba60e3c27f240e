#include "plan/estimate_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "plan/gemm_times.h"
#include "plan/graph_builder.h"
#include "plan/host_tables.h"
#include "plan/placement_bound.h"
#include "plan/step_pricer.h"
#include "recipe/rules/rule.h"

namespace portolan {
namespace {

Status CheckBlock(const Model& model, const Recipe& recipe, const char* field, const std::vector<std::string>& names) {
  std::vector<std::string> blocks;
  for (const Block& block : model.blocks) blocks.push_back(block.name);
  for (const std::string& name : names) {
    if (std::find(blocks.begin(), blocks.end(), name) != blocks.end()) continue;
    return MakeError(ErrorCode::kNotFound, fmt::format("recipe '{}': {}: model '{}' has no block '{}'{}", recipe.id,
                                                       field, model.id, name, DidYouMean(name, blocks)));
  }
  return {};
}

Status CheckRecipe(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  const int64_t batch = recipe.GlobalBatch(cluster.devices);
  if (batch < cluster.devices) {
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("global_batch must be at least the number of devices ({}), got {}", cluster.devices, batch));
  }
  if (recipe.accumulation_steps > batch / cluster.devices) {
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("recipe '{}': execution.accumulation_steps must be at most the local batch ({}), got {}", recipe.id,
                    batch / cluster.devices, recipe.accumulation_steps));
  }
  PORTOLAN_RETURN_IF_ERROR(CheckReplicas(model, recipe, cluster));
  std::vector<std::string> tables;
  for (const Table& table : model.tables) tables.push_back(table.name);
  for (const auto& [name, sharding] : recipe.tables) {
    if (std::find(tables.begin(), tables.end(), name) == tables.end()) {
      return MakeError(ErrorCode::kNotFound,
                       fmt::format("recipe '{}': embedding.tables: model '{}' has no table '{}'{}", recipe.id, model.id,
                                   name, DidYouMean(name, tables)));
    }
    const int holders = cluster.devices / recipe.replicas;
    if (sharding.sharding == Sharding::kColumn && sharding.shards > holders) {
      return MakeError(
          ErrorCode::kInvalidValue,
          fmt::format("recipe '{}': embedding.tables.{}.shards must be at most the number of devices{} ({}), got {}",
                      recipe.id, name, recipe.replicas > 1 ? " of a sharding group" : "", holders, sharding.shards));
    }
  }
  PORTOLAN_RETURN_IF_ERROR(CheckHostTables(model, recipe, cluster));
  PORTOLAN_RETURN_IF_ERROR(CheckBlock(model, recipe, "execution.recompute", recipe.recompute_blocks));
  std::vector<std::string> formats;
  for (const auto& [name, format] : recipe.gemm_by_block) formats.push_back(name);
  return CheckBlock(model, recipe, "precision.gemm_by_block", formats);
}

std::string BindingTerm(const std::vector<ExposedTerm>& breakdown, const StepGraph& graph) {
  if (breakdown.empty()) return "nothing";
  const std::string& name = breakdown.front().name;
  Estimate sum;
  for (const Task& task : graph.tasks) {
    if (name != CategoryName(task.category)) continue;
    sum.compute += task.estimate.compute;
    sum.memory += task.estimate.memory;
    sum.communication += task.estimate.communication;
    sum.launch += task.estimate.launch;
  }
  if (sum.compute + sum.memory + sum.communication + sum.launch == Seconds(0)) return name;
  return name + " (" + BindingPart(sum) + ")";
}

// One line that names the figures of this answer which the chip's file does not state.
void AddInheritedNote(const Accelerator& accelerator, const Recipe& recipe, std::vector<std::string>* notes) {
  if (accelerator.inherited.count("scale_up_fabric") > 0) {
    notes->push_back(fmt::format("{} does not state how its devices are linked; {} is assumed (--fabric names another)",
                                 accelerator.id, accelerator.scale_up_fabric));
  }
  std::vector<std::string> keys;
  for (const auto& [key, from] : accelerator.inherited) {
    if (key == "scale_up_fabric") continue;
    const size_t dot = key.find('.');
    if (dot != std::string::npos && key.substr(dot + 1) != DTypeName(recipe.gemm)) continue;
    keys.push_back(key);
  }
  if (keys.empty()) return;
  notes->push_back(fmt::format("{} does not state {}; taken from its nearest relatives (portolan hw show {})",
                               accelerator.id, Join(keys, ", "), accelerator.id));
}

// Settings of the recipe that change nothing here: a reader may take them for a gain.
void AddIdleSettings(const Model& model, const Recipe& recipe, const Cluster& cluster,
                     std::vector<std::string>* notes) {
  bool unpooled = false;
  for (const FeatureGroup& group : model.groups) unpooled = unpooled || group.pooling == Pooling::kNone;
  if (recipe.dedup != IndexDedup::kNone && !unpooled) {
    notes->push_back("embedding.dedup changes nothing: every group of this model is pooled");
  }
  if (cluster.devices == 1) {
    if (recipe.sharding != Sharding::kAuto && recipe.sharding != Sharding::kDataParallel && !model.tables.empty()) {
      notes->push_back(fmt::format("embedding.sharding {} changes nothing: one device holds every table",
                                   ShardingName(recipe.sharding)));
    }
    if (recipe.dense_parallelism != DenseParallelism::kReplicated) {
      notes->push_back("execution.dense_parallelism changes nothing: there is one device");
    }
    if (recipe.hot_rows > 0) notes->push_back("embedding.replicated_hot_rows changes nothing: there is one device");
  }
  if (recipe.replicas > 1 && recipe.sharding == Sharding::kDataParallel) {
    notes->push_back("embedding.replicas changes nothing: every table is on every device");
  }
  if (recipe.replica_sync_steps > 1 && recipe.replicas == 1) {
    notes->push_back("embedding.replica_sync_steps changes nothing: there are no replicas");
  }
  if (recipe.host_tables_min > Bytes(0) && !AnyInHostMemory(model, recipe)) {
    notes->push_back(recipe.host_cache_fraction >= 1
                         ? "embedding.host_tables_min_bytes changes nothing: the cache would hold every row"
                         : "embedding.host_tables_min_bytes changes nothing: no table is so large");
  }
}

// The exchange that direct stores replace is that of pooled sums inside a node of several: none, nothing to replace.
void AddDirectStoresNote(const Recipe& recipe, const EmbeddingWork& work, std::vector<std::string>* notes) {
  if (recipe.node_exchange == NodeExchange::kDirectStores && work.node_reduce_elements <= 0) {
    notes->push_back(
        "communication.node_exchange direct_stores changes nothing: no table is split by row inside a node");
  }
}

// `given`: null, or where the tables are.
StepEstimate Price(const Model& model, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants,
                   const Placement* given) {
  StepEstimate estimate;
  estimate.global_batch = recipe.GlobalBatch(cluster.devices);
  estimate.local_batch = static_cast<double>(estimate.global_batch) / cluster.devices;
  StepPricer pricer(model, recipe, cluster, constants);
  if (given != nullptr) {
    estimate.placement = *given;
    SumRankLoads(model, pricer.recipe(), &estimate.placement);
  } else {
    estimate.placement = pricer.Place();
  }
  const EmbeddingWork work = pricer.Measure(estimate.placement);
  AddDirectStoresNote(recipe, work, &estimate.notes);
  estimate.graph = pricer.Graph(work);
  estimate.memory = pricer.Memory(estimate.placement, estimate.graph);
  Timeline timeline = pricer.Run(work, estimate.graph);
  estimate.step = timeline.step;
  estimate.breakdown = std::move(timeline.exposed);
  estimate.busy = timeline.busy;
  std::stable_sort(estimate.breakdown.begin(), estimate.breakdown.end(),
                   [](const ExposedTerm& a, const ExposedTerm& b) { return a.time > b.time; });
  estimate.samples_per_s =
      timeline.step > Seconds(0) ? static_cast<double>(estimate.global_batch) / timeline.step.value : 0;
  return estimate;
}

Result<StepEstimate> EstimateWith(const Model& model, const Recipe& recipe, const Cluster& cluster,
                                  const Placement* given, const StepConstants& constants) {
  std::optional<Model> revised;
  if (!recipe.structure.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(revised, ApplyStructure(model, recipe));
  }
  const Model& priced = revised ? *revised : model;
  PORTOLAN_RETURN_IF_ERROR(CheckRecipe(priced, recipe, cluster));
  if (given != nullptr && (given->tables.size() != priced.tables.size() ||
                           given->ranks.size() != static_cast<size_t>(cluster.devices / recipe.replicas))) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("a placement of {} tables on {} ranks, for {} tables on {}", given->tables.size(),
                                 given->ranks.size(), priced.tables.size(), cluster.devices / recipe.replicas));
  }
  StepEstimate estimate = Price(priced, recipe, cluster, constants, given);
  estimate.binding = BindingTerm(estimate.breakdown, estimate.graph);
  AddIdleSettings(priced, recipe, cluster, &estimate.notes);
  AddInheritedNote(cluster.accelerator, recipe, &estimate.notes);
  if (recipe.replicas > 1) {
    estimate.notes.push_back(
        fmt::format("ranks of tables are those of one sharding group of {} devices; there are {} such groups",
                    cluster.devices / recipe.replicas, recipe.replicas));
  }
  std::set<DType> formats = {recipe.gemm};
  for (const auto& [block, format] : recipe.gemm_by_block) formats.insert(format);
  for (const DType format : formats) {
    if (cluster.accelerator.peak_matrix[format] > FlopsPerSecond(0)) continue;
    estimate.notes.push_back(fmt::format("{} states no matrix rate for {}: priced in {}", cluster.accelerator.id,
                                         DTypeName(format),
                                         DTypeName(NativeGemmFormat(format, recipe.activation, cluster.accelerator))));
  }
  if (const auto times = CurrentGemmTimes()) {
    std::set<DType> native;
    for (const DType format : formats) {
      native.insert(NativeGemmFormat(format, recipe.activation, cluster.accelerator));
    }
    for (const DType format : native) {
      std::string note = times->Note(format, cluster.accelerator);
      if (!note.empty()) estimate.notes.push_back(std::move(note));
    }
  }
  return estimate;
}

}  // namespace

Result<StepEstimate> EstimateStep(const Model& model, const Recipe& recipe, const Cluster& cluster,
                                  const StepConstants& constants) {
  return EstimateWith(model, recipe, cluster, nullptr, constants);
}

Result<StepEstimate> EstimateStepPlaced(const Model& model, const Recipe& recipe, const Cluster& cluster,
                                        const Placement& placement, const StepConstants& constants) {
  return EstimateWith(model, recipe, cluster, &placement, constants);
}

Result<Seconds> StepLowerBound(const Model& model, const Recipe& recipe, const Cluster& cluster,
                               const StepConstants& constants) {
  std::optional<Model> revised;
  if (!recipe.structure.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(revised, ApplyStructure(model, recipe));
  }
  const Model& priced = revised ? *revised : model;
  PORTOLAN_RETURN_IF_ERROR(CheckRecipe(priced, recipe, cluster));
  return PlacementBound(priced, recipe, cluster, constants);
}

}  // namespace portolan
