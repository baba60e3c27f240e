#include "plan/plan.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/progress.h"
#include "base/text.h"
#include "commands.h"
#include "plan/estimate_json.h"
#include "plan/export.h"
#include "plan/validate.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

struct PlanCommand {
  std::string model, from, to, recipe, out, torchrec;
  std::vector<std::string> allow;
  std::optional<std::string> global_batch;
  bool show_rejected = false, show_tables = false, show_launch = false;
};

std::string Ms(Seconds time) { return fmt::format("{:.3f} ms", time.value * 1e3); }
std::string Percent(double gain) { return fmt::format("{:+.1f} %", 100 * gain); }
std::string Rate(double per_s) {
  return per_s >= 1e6 ? fmt::format("{:.2f} M", per_s * 1e-6) : fmt::format("{:.1f} k", per_s * 1e-3);
}
std::string Gigabytes(Bytes bytes) { return fmt::format("{:.1f} GB", bytes.value * 1e-9); }

void PrintRow(const char* name, const StepEstimate& estimate) {
  fmt::print("{:<34} {:>11} {:>10} {:>9} {:>12}\n", name, Ms(estimate.step), Rate(estimate.samples_per_s),
             Gigabytes(estimate.memory.total), estimate.memory.Fits() ? "fits" : "does not fit");
}

// The change that gains most, why the old machine does not have it, and the two machines side by side.
std::string WhatDecides(const Plan& plan, const PlanCommand& command) {
  std::string text;
  if (!plan.codesigned.estimate.memory.Fits()) return text;
  if (!plan.repairs.empty()) {
    text += " The ported recipe fits by";
    for (const Step& step : plan.repairs) {
      text +=
          fmt::format("{} {} = {}", &step == &plan.repairs.front() ? "" : " and", step.change.rule, step.change.option);
    }
    text += ".";
  }
  const LedgerEntry* largest = nullptr;
  for (const LedgerEntry& entry : plan.ledger) {
    if (largest == nullptr || entry.gain_to > largest->gain_to) largest = &entry;
  }
  if (largest != nullptr && plan.no_gain_reason.empty()) {
    text += fmt::format(" What decides: {} = {} ({}", largest->step.change.rule, largest->step.change.option,
                        Percent(largest->gain_to));
    text += largest->gain_from ? fmt::format("; {} on {}).", Percent(*largest->gain_from), command.from)
                               : fmt::format("; {}: {}).", command.from, largest->not_on_from);
  }
  if (plan.on_from.memory.Fits()) {
    text += fmt::format(" {} then trains at {:.2f}x the samples/s of {}.", command.to,
                        plan.codesigned.estimate.samples_per_s / plan.on_from.samples_per_s, command.from);
  }
  return text;
}

void PrintSummary(const Plan& plan, const Model& model, const PlanCommand& command) {
  std::string sentence;
  if (!plan.codesigned.estimate.memory.Fits()) {
    sentence = fmt::format("{} does not fit on {}.", model.id, command.to);
  } else if (!plan.no_gain_reason.empty()) {
    sentence =
        fmt::format("{} on {}: nothing to gain over the ported recipe: {}.", model.id, command.to, plan.no_gain_reason);
  } else {
    sentence = fmt::format("{} on {}: {:.2f}x the samples/s of the directly ported recipe, by {} {}; bound by {}.",
                           model.id, command.to, plan.speedup, plan.ledger.size(),
                           plan.ledger.size() == 1 ? "change" : "changes", plan.codesigned.estimate.binding);
  }
  if (plan.time_to_quality_ratio) {
    sentence += fmt::format(" Time to quality: {:.2f}x.", *plan.time_to_quality_ratio);
  }
  sentence += WhatDecides(plan, command);
  fmt::print("{}\n", WrapText(sentence, 0, kColumns));
  fmt::print("{:<34} {:>11} {:>10} {:>9}\n", "", "step", "samples/s", "memory");
  PrintRow(fmt::format("best on {} ({})", command.from, plan.baseline_source).c_str(), plan.on_from);
  PrintRow(fmt::format("ported to {}", command.to).c_str(), plan.baseline);
  PrintRow(fmt::format("co-designed for {}", command.to).c_str(), plan.codesigned.estimate);
  std::string priced = fmt::format("{} recipes priced", plan.estimates);
  if (plan.codesigned.estimate.memory.Fits() && !model.tables.empty()) {
    priced += fmt::format("; the step is within {:.1f} % of the lower bound over all placements of the tables",
                          100 * plan.codesigned.gap);
  }
  fmt::print("{}\n", WrapText(priced + ".", 0, kColumns));
}

void PrintBreakdown(const Plan& plan) {
  std::vector<std::string> names;
  for (const StepEstimate* estimate : {&plan.baseline, &plan.codesigned.estimate}) {
    for (const ExposedTerm& term : estimate->breakdown) {
      if (std::find(names.begin(), names.end(), term.name) == names.end()) names.push_back(term.name);
    }
  }
  const auto of = [](const StepEstimate& estimate, const std::string& name) {
    for (const ExposedTerm& term : estimate.breakdown) {
      if (term.name == name) return term.time;
    }
    return Seconds(0);
  };
  fmt::print("{:<24} {:>14} {:>14}\n", "exposed", "ported", "co-designed");
  for (const std::string& name : names) {
    fmt::print("{:<24} {:>14} {:>14}\n", name, Ms(of(plan.baseline, name)), Ms(of(plan.codesigned.estimate, name)));
  }
}

void PrintLedger(const Plan& plan, const PlanCommand& command) {
  for (const Step& step : plan.repairs) {
    fmt::print("\nneeded to fit on {}: {} = {}\n", command.to, step.change.rule, step.change.option);
    fmt::print("{}", WrapText(step.change.what, 4, kColumns));
    fmt::print("{}", WrapText(fmt::format("{}; memory {} to {}, step {} to {}", MathsClassName(step.change.maths),
                                          Gigabytes(step.memory_before), Gigabytes(step.memory_after), Ms(step.before),
                                          Ms(step.after)),
                              4, kColumns));
  }
  if (!plan.ledger.empty()) fmt::print("\ngains, in the order taken\n");
  for (const LedgerEntry& entry : plan.ledger) {
    const Step& step = entry.step;
    fmt::print("{} = {}: {} here (at least {})\n", step.change.rule, step.change.option, Percent(entry.gain_to),
               Percent(entry.gain_lower_bound));
    fmt::print("{}", WrapText(step.change.what, 4, kColumns));
    const std::string from =
        entry.gain_from
            ? fmt::format("{} on {}: {} anywhere, {} only here", Percent(*entry.gain_from), command.from,
                          Percent(entry.gain_anywhere), Percent(entry.gain_only_here))
            : fmt::format("on {}: {}; {} only here", command.from, entry.not_on_from, Percent(entry.gain_only_here));
    fmt::print("{}", WrapText(from, 4, kColumns));
    fmt::print("    {}; memory {} to {}\n", MathsClassName(step.change.maths), Gigabytes(step.memory_before),
               Gigabytes(step.memory_after));
    if (step.binding_before != step.binding_after) {
      fmt::print(
          "{}", WrapText(fmt::format("bound by {}, then by {}", step.binding_before, step.binding_after), 4, kColumns));
    }
    if (!entry.published.empty()) fmt::print("{}", WrapText("published: " + entry.published, 4, kColumns));
  }
}

void PrintDividends(const Plan& plan, const PlanCommand& command) {
  if (plan.dividends.empty()) return;
  fmt::print("\ncapacity dividend: how much bigger at the ported step's time (batch: a sample)\n");
  fmt::print("{:<24} {:>14} {:>14}  {}\n", "", command.to, command.from, "stopped by");
  for (const Dividend& dividend : plan.dividends) {
    fmt::print("{:<24} {:>13.2f}x {:>13.2f}x  {}\n", dividend.dimension, dividend.factor, dividend.factor_from,
               dividend.limit);
  }
}

void PrintRejected(const Plan& plan) {
  fmt::print("\nnot taken\n");
  for (const Rejected& rejected : plan.codesigned.rejected) {
    const std::string name = rejected.option.empty() ? rejected.rule : rejected.rule + " = " + rejected.option;
    fmt::print("{}", WrapText(name + ": " + rejected.reason, 2, kColumns));
  }
}

void PrintTables(const Model& model, const Recipe& recipe, const Placement& placement) {
  if (recipe.replicas > 1) {
    fmt::print("\n{} sharding groups of {} devices; ranks of one of them:", recipe.replicas, placement.ranks.size());
  }
  fmt::print("\n{:<28} {:>13} {:>5}  {:<14} {}\n", "table", "rows", "dim", "sharding", "ranks");
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    std::string ranks = place.ranks.empty() ? "all" : "";
    for (size_t i = 0; i < place.ranks.size() && i < 6; ++i)
      ranks += fmt::format("{}{}", i > 0 ? "," : "", place.ranks[i]);
    if (place.ranks.size() > 6) ranks += fmt::format(",.. ({})", place.ranks.size());
    fmt::print("{:<28} {:>13.0f} {:>5}  {:<14} {}\n", model.tables[t].name, model.tables[t].rows, model.tables[t].dim,
               ShardingName(place.sharding), ranks);
  }
}

nlohmann::ordered_json ChangesJson(const Plan& plan) {
  nlohmann::ordered_json changes = nlohmann::ordered_json::array();
  for (const LedgerEntry& entry : plan.ledger) {
    nlohmann::ordered_json change;
    change["rule"] = entry.step.change.rule;
    change["option"] = entry.step.change.option;
    change["what"] = entry.step.change.what;
    change["class"] = MathsClassName(entry.step.change.maths);
    change["gain_to"] = entry.gain_to;
    change["gain_from"] = entry.gain_from ? nlohmann::ordered_json(*entry.gain_from) : nlohmann::ordered_json();
    if (!entry.gain_from) change["not_on_from"] = entry.not_on_from;
    change["gain_anywhere"] = entry.gain_anywhere;
    change["gain_only_here"] = entry.gain_only_here;
    change["gain_lower_bound"] = entry.gain_lower_bound;
    change["step_time_before_s"] = entry.step.before.value;
    change["step_time_after_s"] = entry.step.after.value;
    change["hbm_bytes_before"] = entry.step.memory_before.value;
    change["hbm_bytes_after"] = entry.step.memory_after.value;
    change["binding_before"] = entry.step.binding_before;
    change["binding_after"] = entry.step.binding_after;
    change["published"] = entry.published;
    changes.push_back(std::move(change));
  }
  return changes;
}

// Schema portolan.plan/1, docs/plan.md.
nlohmann::ordered_json ToJson(const Plan& plan, const Model& model, const Cluster& from, const Cluster& to) {
  nlohmann::ordered_json json;
  json["schema"] = "portolan.plan/1";
  json["model"] = model.id;
  json["baseline_source"] = plan.baseline_source;
  json["on_from"] = EstimateJson(plan.on_from, model, plan.baseline_recipe, from);
  json["baseline"] = EstimateJson(plan.baseline, model, plan.ported_recipe, to);
  json["codesigned"] = EstimateJson(plan.codesigned.estimate, model, plan.codesigned.recipe, to);
  json["speedup"] = plan.speedup;
  json["time_to_quality_ratio"] =
      plan.time_to_quality_ratio ? nlohmann::ordered_json(*plan.time_to_quality_ratio) : nlohmann::ordered_json();
  json["changes"] = ChangesJson(plan);
  auto& repairs = json["repairs"] = nlohmann::ordered_json::array();
  for (const Step& step : plan.repairs) {
    repairs.push_back({{"rule", step.change.rule}, {"option", step.change.option}, {"what", step.change.what}});
  }
  auto& rejected = json["rejected"] = nlohmann::ordered_json::array();
  for (const Rejected& entry : plan.codesigned.rejected) {
    rejected.push_back({{"rule", entry.rule}, {"option", entry.option}, {"reason", entry.reason}});
  }
  json["no_gain_reason"] =
      plan.no_gain_reason.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(plan.no_gain_reason);
  auto& dividends = json["dividends"] = nlohmann::ordered_json::array();
  for (const Dividend& dividend : plan.dividends) {
    dividends.push_back({{"dimension", dividend.dimension},
                         {"factor", dividend.factor},
                         {"factor_from", dividend.factor_from},
                         {"limit", dividend.limit}});
  }
  json["lower_bound_step_time_s"] = plan.codesigned.lower_bound.value;
  json["gap"] = plan.codesigned.gap;
  json["estimates"] = plan.estimates;
  auto& tables = json["tables"] = nlohmann::ordered_json::array();
  const Placement& placement = plan.codesigned.estimate.placement;
  for (size_t t = 0; t < placement.tables.size(); ++t) {
    const TablePlacement& place = placement.tables[t];
    tables.push_back({{"name", model.tables[t].name},
                      {"sharding", ShardingName(place.sharding)},
                      {"row_shards", place.row_shards},
                      {"column_shards", place.column_shards},
                      {"ranks", place.ranks}});
  }
  return json;
}

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return MakeError(ErrorCode::kIo, "cannot write '" + path + "'");
  return {};
}

Status CheckAllowed(const std::vector<std::string>& allow) {
  std::vector<std::string> names;
  for (const auto& rule : AllRules()) names.emplace_back(rule->name());
  for (const std::string& name : allow) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return MakeError(ErrorCode::kUsage, "--allow: no rule is named '" + name + "'" + DidYouMean(name, names) +
                                              "; rules: " + Join(names, ", "));
    }
  }
  return {};
}

Result<int> RunPlan(const PlanCommand& command, const GlobalOptions& global) {
  PORTOLAN_RETURN_IF_ERROR(CheckAllowed(command.allow));
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadPricingCatalogue(global));
  const std::vector<std::string> dirs = DataDirectories(global);
  PORTOLAN_ASSIGN_OR_RETURN(const std::string model_file, FindDataFile(dirs, "models", command.model));
  PORTOLAN_ASSIGN_OR_RETURN(const Model model, LoadModel(model_file));
  PORTOLAN_ASSIGN_OR_RETURN(const Cluster from, catalogue.ParseCluster(command.from));
  PORTOLAN_ASSIGN_OR_RETURN(const Cluster to, catalogue.ParseCluster(command.to));
  PlanOptions options;
  options.allow.insert(command.allow.begin(), command.allow.end());
  options.start = DefaultRecipe();
  const std::string start = command.recipe.empty() ? model.published_recipe : command.recipe;
  if (!start.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::string recipe_file, FindDataFile(dirs, "recipes", start));
    PORTOLAN_ASSIGN_OR_RETURN(options.start, LoadRecipe(recipe_file));
  }
  if (command.global_batch) {
    PORTOLAN_ASSIGN_OR_RETURN(options.start.global_batch, ParseBatch("--global-batch", command.global_batch));
    options.start.local_batch = 0;
  }
  if (!command.recipe.empty()) options.baseline = options.start;
  PORTOLAN_ASSIGN_OR_RETURN(options.errors, MeasureTermErrors(catalogue, dirs, model, to.accelerator.vendor));
  ProgressBar bar;
  options.progress = [&bar](double done, const char* what) { bar.Update(done, what); };
  PORTOLAN_ASSIGN_OR_RETURN(Plan plan, MakePlan(model, from, to, options));
  bar.Finish();

  if (!command.out.empty()) {
    Recipe recipe = plan.codesigned.recipe;
    recipe.id += "_" + to.accelerator.id;
    recipe.description = fmt::format("planned for {} on {}, from {}", model.id, command.to, command.from);
    PORTOLAN_RETURN_IF_ERROR(WriteText(command.out, WriteRecipe(recipe)));
  }
  if (!command.torchrec.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(
        command.torchrec, TorchRecPlanJson(model, plan.codesigned.recipe, plan.codesigned.estimate.placement, to)));
  }
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, ToJson(plan, model, from, to)));
    if (global.json_path == "-") return 0;
  }
  PrintSummary(plan, model, command);
  PrintBreakdown(plan);
  PrintLedger(plan, command);
  PrintDividends(plan, command);
  if (!plan.codesigned.estimate.memory.Fits()) {
    fmt::print("\n{}",
               WrapText("what would make it fit: " + plan.codesigned.estimate.memory.WhatWouldFit(to), 0, kColumns));
  }
  if (command.show_rejected) PrintRejected(plan);
  if (command.show_tables) PrintTables(model, plan.codesigned.recipe, plan.codesigned.estimate.placement);
  if (command.show_launch) fmt::print("\n{}", LaunchText(plan.codesigned.recipe, to));
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto command = std::make_shared<PlanCommand>();
  CLI::App* plan = app.add_subcommand("plan", "Recipe and structure that suit a new machine");
  plan->add_option("model", command->model, HelpText("Model file, or the name of one in data/models"))->required();
  plan->add_option("--from", command->from, HelpText("The cluster it runs on today, for example 8xb200"))->required();
  plan->add_option("--to", command->to, HelpText("The cluster it must run on, for example 8xmi350x"))->required();
  plan->add_option("--recipe", command->recipe,
                   HelpText("The baseline: your recipe as it is (default: the best one on --from, searched from the "
                            "model's published recipe)"));
  plan->add_option("--global-batch", command->global_batch, HelpText("Samples a step instead of the recipe's"));
  plan->add_option("--allow", command->allow,
                   HelpText("Rules that change the maths and may be used: batch, gemm_dtype, row_dtype, "
                            "gradient_dtype, embedding_optimizer, optimizer_state, sharding_2d, jagged_packing, "
                            "accumulation"))
      ->delimiter(',');
  plan->add_option("--out", command->out, HelpText("Write the co-designed recipe (estimate prices it the same)"));
  plan->add_option("--torchrec", command->torchrec, HelpText("Write the tables' sharding as a TorchRec plan (JSON)"));
  plan->add_flag("--rejected", command->show_rejected, HelpText("List what was not taken, and why"));
  plan->add_flag("--tables", command->show_tables, HelpText("List where every table lives"));
  plan->add_flag("--launch", command->show_launch,
                 HelpText("Print a launch line and the vendor's documented settings"));
  plan->callback([command, &global, exit_code] {
    const Result<int> result = RunPlan(*command, global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
