#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "commands.h"
#include "plan/estimate_json.h"
#include "plan/validate.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

struct EstimateOptions {
  std::string model, cluster, recipe, scale_up, scale_out;
  std::optional<std::string> global_batch, local_batch;
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
    const std::string bar(static_cast<size_t>(share * 30 + 0.5), '#');
    fmt::print("{:<24} {:>12} {:>6.1f}%{}{}\n", term.name, ShowSeconds(term.time), 100 * share, bar.empty() ? "" : "  ",
               bar);
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
             memory.FitsDevice() ? "fits" : "does not fit");
  if (memory.host_tables > Bytes(0)) {
    fmt::print("{:<24} {:>12.2f} of {:.0f}: {}\n", "host memory per node", memory.host_tables.value * 1e-9,
               memory.host_capacity.value * 1e-9, memory.FitsHost() ? "fits" : "does not fit");
  }
  if (!memory.Fits()) fmt::print("{}", WrapText(memory.WhatWouldFit(cluster), 2, kColumns));
}

// `text` shortened in its middle to `width` characters.
std::string Fit(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  const size_t tail = (width - 2) / 2;
  return text.substr(0, width - 2 - tail) + ".." + text.substr(text.size() - tail);
}

// "0,1,2,3" or, where that is too wide, "0,1,... (64)".
std::string ShowRanks(const std::vector<int>& ranks, size_t width) {
  if (ranks.empty()) return "all";
  const std::string count = fmt::format("... ({})", ranks.size());
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::string next = fmt::format("{}{}", i ? "," : "", ranks[i]);
    const size_t reserved = i + 1 == ranks.size() ? 0 : count.size() + 1;
    if (text.size() + next.size() + reserved > width) return text + (text.empty() ? "" : ",") + count;
    text += next;
  }
  return text;
}

void PrintTables(const Model& model, const Placement& placement) {
  fmt::print("\n{:<24} {:>14} {:>5}  {:<13} {}\n", "table", "rows", "dim", "sharding", "devices");
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    fmt::print("{:<24} {:>14.0f} {:>5}  {:<13} {}\n", Fit(model.tables[t].name, 24), model.tables[t].rows,
               model.tables[t].dim, ShardingName(place.sharding), ShowRanks(place.ranks, 19));
  }
}

void PrintOps(const StepGraph& graph) {
  fmt::print("\n{:<36} {:>10} {:>10} {:>10} {:>9}\n", "op (alone, us)", "total", "compute", "memory", "comm");
  for (const Task& task : graph.tasks) {
    const Estimate& e = task.estimate;
    fmt::print("{:<36} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.1f}\n", Fit(task.name, 36), e.total.value * 1e6,
               e.compute.value * 1e6, e.memory.value * 1e6, e.communication.value * 1e6);
  }
}

Result<int> RunEstimate(const EstimateOptions& options, const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadPricingCatalogue(global));
  PreparedStep step;
  const std::vector<std::string> dirs = DataDirectories(global);
  PORTOLAN_ASSIGN_OR_RETURN(const std::string model_file, FindDataFile(dirs, "models", options.model));
  PORTOLAN_ASSIGN_OR_RETURN(step.model, LoadModel(model_file));
  step.recipe = DefaultRecipe();
  const std::string recipe_name = options.recipe.empty() ? step.model.published_recipe : options.recipe;
  if (!recipe_name.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string recipe_file, FindDataFile(dirs, "recipes", recipe_name));
    PORTOLAN_ASSIGN_OR_RETURN(step.recipe, LoadRecipe(recipe_file));
  }
  if (options.global_batch || options.local_batch) {
    PORTOLAN_ASSIGN_OR_RETURN(step.recipe.global_batch, ParseBatch("--global-batch", options.global_batch));
    PORTOLAN_ASSIGN_OR_RETURN(step.recipe.local_batch, ParseBatch("--local-batch", options.local_batch));
  }
  PORTOLAN_ASSIGN_OR_RETURN(step.cluster, catalogue.ParseCluster(options.cluster, options.scale_up, options.scale_out));
  PORTOLAN_ASSIGN_OR_RETURN(const StepEstimate estimate, EstimateStep(step.model, step.recipe, step.cluster));

  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(
        WriteJsonFile(global.json_path, EstimateJson(estimate, step.model, step.recipe, step.cluster)));
    if (global.json_path == "-") return 0;
  }
  fmt::print("{}",
             WrapText(fmt::format("{} on {}, recipe {}, global batch {} = {} x {:g}", step.model.id, options.cluster,
                                  step.recipe.id, estimate.global_batch, step.cluster.devices, estimate.local_batch),
                      0, kColumns));
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
  CLI::App* command = app.add_subcommand("estimate", "Step time and memory of a recipe on a cluster");
  command->add_option("model", options->model, HelpText("Model file, or the name of one in data/models"))
      ->type_name("MODEL")
      ->required();
  command
      ->add_option("--on", options->cluster,
                   HelpText("ID, NxID or NODESxPER_NODExID, for example h100, 8xmi350x, 2x4xh100"))
      ->type_name("CLUSTER")
      ->required();
  command
      ->add_option("--recipe", options->recipe,
                   HelpText("Recipe file, or the name of one in data/recipes (without: the model's published one, else "
                            "bf16, 1024 samples a device)"))
      ->type_name("RECIPE");
  CLI::Option* global_batch = command
                                  ->add_option("--global-batch", options->global_batch,
                                               HelpText("Samples a step over all devices, instead of the recipe's"))
                                  ->type_name("N");
  command
      ->add_option("--local-batch", options->local_batch,
                   HelpText("Samples a step on each device, instead of the recipe's"))
      ->type_name("N")
      ->excludes(global_batch);
  command->add_option("--fabric", options->scale_up, HelpText("Scale-up fabric instead of the accelerator's own"))
      ->type_name("ID");
  command->add_option("--nic", options->scale_out, HelpText("Scale-out fabric (one NIC a device) instead of its own"))
      ->type_name("ID");
  command->add_flag("--ops", options->show_ops, HelpText("List every kernel and collective with its price"));
  command->add_flag("--tables", options->show_tables, HelpText("List where every embedding table lives"));
  command->footer("Exit code 0 also when it does not fit: that is an answer. docs/estimate.md");
  command->callback([options, &global, exit_code] {
    const Result<int> result = RunEstimate(*options, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
