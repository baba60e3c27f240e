#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "commands.h"
#include "plan/validate.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

struct EstimateOptions {
  std::string model, cluster, recipe, scale_up, scale_out;
  int64_t global_batch = 0, local_batch = 0;
  bool show_ops = false, show_tables = false;
};

std::string ShowSeconds(Seconds time) {
  if (time.value >= 1) return fmt::format("{:.3f} s", time.value);
  if (time.value >= 1e-3) return fmt::format("{:.3f} ms", time.value * 1e3);
  return fmt::format("{:.1f} us", time.value * 1e6);
}

std::string ShowRate(double per_s) {
  if (per_s >= 1e6) return fmt::format("{:.2f} M", per_s * 1e-6);
  if (per_s >= 1e4) return fmt::format("{:.1f} k", per_s * 1e-3);
  return fmt::format("{:.0f} ", per_s);
}

void PrintBreakdown(const StepEstimate& estimate) {
  fmt::print("\n{:<24} {:>12} {:>7}\n", "exposed", "time", "share");
  for (const ExposedTerm& term : estimate.breakdown) {
    const double share = term.time / estimate.step;
    fmt::print("{:<24} {:>12} {:>6.1f}%  {}\n", term.name, ShowSeconds(term.time), 100 * share,
               std::string(static_cast<size_t>(share * 30 + 0.5), '#'));
  }
}

void PrintMemory(const MemoryEstimate& memory, const Cluster& cluster) {
  const std::pair<const char*, Bytes> parts[] = {{"embedding rows", memory.tables},
                                                 {"embedding optimizer state", memory.table_state},
                                                 {"dense weights", memory.dense_parameters},
                                                 {"dense gradients", memory.dense_gradients},
                                                 {"dense optimizer state", memory.dense_state},
                                                 {"activations kept", memory.activations},
                                                 {"largest layer's backward", memory.transient},
                                                 {"exchange buffers", memory.exchange_buffers},
                                                 {"reserve", memory.reserve}};
  fmt::print("\n{:<24} {:>12}\n", "memory per device", "GB");
  for (const auto& [name, bytes] : parts) {
    if (bytes > Bytes(0)) fmt::print("{:<24} {:>12.2f}\n", name, bytes.value * 1e-9);
  }
  fmt::print("{:<24} {:>12.2f} of {:.0f}: {}\n", "total", memory.total.value * 1e-9, memory.capacity.value * 1e-9,
             memory.Fits() ? "fits" : "does not fit");
  if (!memory.Fits()) fmt::print("{}", WrapText(memory.WhatWouldFit(cluster), 2, kColumns));
}

void PrintTables(const Model& model, const Placement& placement) {
  fmt::print("\n{:<28} {:>13} {:>5}  {:<14} {}\n", "table", "rows", "dim", "sharding", "ranks");
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    std::string ranks = "all";
    if (!place.ranks.empty()) {
      ranks.clear();
      for (size_t i = 0; i < place.ranks.size() && i < 8; ++i)
        ranks += fmt::format("{}{}", i ? "," : "", place.ranks[i]);
      if (place.ranks.size() > 8) ranks += fmt::format(",... ({})", place.ranks.size());
    }
    fmt::print("{:<28} {:>13.0f} {:>5}  {:<14} {}\n", model.tables[t].name, model.tables[t].rows, model.tables[t].dim,
               ShardingName(place.sharding), ranks);
  }
}

void PrintOps(const StepGraph& graph) {
  fmt::print("\n{:<36} {:>10} {:>10} {:>10} {:>9}\n", "op (alone, us)", "total", "compute", "memory", "comm");
  for (const Task& task : graph.tasks) {
    const Estimate& e = task.estimate;
    fmt::print("{:<36} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.1f}\n", task.name, e.total.value * 1e6, e.compute.value * 1e6,
               e.memory.value * 1e6, e.communication.value * 1e6);
  }
}

// The document of docs/estimate.md: SI numbers, no clock and no path, so that equal inputs give equal bytes.
nlohmann::ordered_json ToJson(const StepEstimate& estimate, const Model& model, const Recipe& recipe,
                              const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["schema"] = "portolan.estimate/1";
  json["model"] = model.id;
  json["recipe"] = recipe.id;
  json["accelerator"] = cluster.accelerator.id;
  json["devices"] = cluster.devices;
  json["devices_per_node"] = cluster.devices_per_node;
  json["scale_up_fabric"] = cluster.scale_up.id;
  json["scale_out_fabric"] = cluster.scale_out.id;
  json["global_batch"] = estimate.global_batch;
  json["step_time_s"] = estimate.step.value;
  json["samples_per_s"] = estimate.samples_per_s;
  json["hbm_bytes_per_device"] = estimate.memory.total.value;
  json["hbm_capacity_bytes_per_device"] = estimate.memory.capacity.value;
  json["fits"] = estimate.memory.Fits();
  json["binding"] = estimate.binding;
  auto& breakdown = json["breakdown"] = nlohmann::ordered_json::object();
  for (const ExposedTerm& term : estimate.breakdown) breakdown[term.name + "_s"] = term.time.value;
  auto& busy = json["busy"] = nlohmann::ordered_json::object();
  for (int c = 0; c < kCategoryCount; ++c) {
    busy[std::string(CategoryName(static_cast<Category>(c))) + "_s"] = estimate.busy[static_cast<size_t>(c)].value;
  }
  const MemoryEstimate& m = estimate.memory;
  json["memory"] = {{"embedding_rows_bytes", m.tables.value},
                    {"embedding_state_bytes", m.table_state.value},
                    {"dense_weights_bytes", m.dense_parameters.value},
                    {"dense_gradients_bytes", m.dense_gradients.value},
                    {"dense_state_bytes", m.dense_state.value},
                    {"activations_bytes", m.activations.value},
                    {"transient_bytes", m.transient.value},
                    {"exchange_buffers_bytes", m.exchange_buffers.value},
                    {"reserve_bytes", m.reserve.value}};
  json["notes"] = estimate.notes;
  return json;
}

Result<int> RunEstimate(const EstimateOptions& options, const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  ValidationEntry entry;
  entry.model = options.model;
  entry.recipe = options.recipe;
  entry.cluster = options.cluster;
  entry.scale_up = options.scale_up;
  entry.scale_out = options.scale_out;
  PreparedStep step;
  const std::vector<std::string> dirs = DataDirectories(global);
  PORTOLAN_ASSIGN_OR_RETURN(const std::string model_file, FindDataFile(dirs, "models", options.model));
  PORTOLAN_ASSIGN_OR_RETURN(step.model, LoadModel(model_file));
  step.recipe = DefaultRecipe();
  if (!options.recipe.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string recipe_file, FindDataFile(dirs, "recipes", options.recipe));
    PORTOLAN_ASSIGN_OR_RETURN(step.recipe, LoadRecipe(recipe_file));
  }
  if (options.global_batch > 0 || options.local_batch > 0) {
    step.recipe.global_batch = options.global_batch;
    step.recipe.local_batch = options.local_batch;
  }
  PORTOLAN_ASSIGN_OR_RETURN(step.cluster, catalogue.ParseCluster(options.cluster, options.scale_up, options.scale_out));
  PORTOLAN_ASSIGN_OR_RETURN(const StepEstimate estimate, EstimateStep(step.model, step.recipe, step.cluster));

  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, ToJson(estimate, step.model, step.recipe, step.cluster)));
    if (global.json_path == "-") return 0;
  }
  fmt::print("{} on {}, recipe {}, global batch {} ({:g} a device)\n", step.model.id, options.cluster, step.recipe.id,
             estimate.global_batch, estimate.local_batch);
  fmt::print("step {}   {}samples/s   bound by {}\n", ShowSeconds(estimate.step), ShowRate(estimate.samples_per_s),
             estimate.binding);
  PrintBreakdown(estimate);
  PrintMemory(estimate.memory, step.cluster);
  if (options.show_tables) PrintTables(step.model, estimate.placement);
  if (options.show_ops) PrintOps(estimate.graph);
  if (!estimate.notes.empty()) {
    fmt::print("\nnotes\n");
    for (const std::string& note : estimate.notes) fmt::print("{}", WrapText(note, 2, kColumns));
  }
  return 0;
}

}  // namespace

void AddEstimateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* command = app.add_subcommand("estimate", "Predict step time and memory of one recipe on one cluster");
  command->add_option("model", options->model, "Model file, or the name of one in data/models")->required();
  command->add_option("--on", options->cluster, "Cluster: ID, NxID or NODESxPER_NODExID, for example 8xmi350x")
      ->required();
  command->add_option("--recipe", options->recipe,
                      "Recipe file, or the name of one in data/recipes (default: bf16, automatic sharding, 1024 "
                      "samples a device)");
  CLI::Option* global_batch =
      command->add_option("--global-batch", options->global_batch, "Samples a step over all devices")
          ->check(CLI::Range(int64_t{1}, int64_t{1000000000000}));
  command->add_option("--local-batch", options->local_batch, "Samples a step on each device")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000000}))
      ->excludes(global_batch);
  command->add_option("--fabric", options->scale_up, "Scale-up fabric instead of the accelerator's own");
  command->add_option("--nic", options->scale_out, "Scale-out fabric, one NIC a device");
  command->add_flag("--ops", options->show_ops, "List every kernel and collective with its price");
  command->add_flag("--tables", options->show_tables, "List where every embedding table lives");
  command->callback([options, &global, exit_code] {
    const Result<int> result = RunEstimate(*options, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
