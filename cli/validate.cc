#include "plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "commands.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

const char* Verdict(const ValidationRow& row) {
  if (!row.entry.unmodelled.empty()) return "unmodelled";
  if (!row.error.empty()) return "failed";
  if (row.WithinTolerance()) return "ok";
  return row.entry.known_fault.empty() ? "OFF" : "known fault";
}

struct Summary {
  int modelled = 0, off = 0;
  double sum_log_error = 0, worst_log_error = 0;
  // Of the factors between prediction and measurement, whichever is the larger: the geometric mean, and the largest.
  double Mean() const { return std::exp(sum_log_error / modelled); }
  double Worst() const { return std::exp(worst_log_error); }
};

void Count(const ValidationRow& row, Summary& summary) {
  if (!row.predicted || !row.entry.step) return;
  if (!row.WithinTolerance()) ++summary.off;
  ++summary.modelled;
  const double log_error = std::abs(std::log(*row.predicted / *row.entry.step));
  summary.sum_log_error += log_error;
  summary.worst_log_error = std::max(summary.worst_log_error, log_error);
}

// The message without the path of the data folder, which differs between machines.
std::string WithoutFolder(std::string message, const std::string& entry_file) {
  const std::string data = std::filesystem::path(entry_file).parent_path().parent_path().string() + "/";
  for (size_t at = message.find(data); at != std::string::npos; at = message.find(data)) message.erase(at, data.size());
  return message;
}

nlohmann::ordered_json ToJson(const std::vector<ValidationRow>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = "portolan.validate/1";
  json["entries"] = nlohmann::ordered_json::array();
  for (const ValidationRow& row : rows) {
    nlohmann::ordered_json entry;
    entry["id"] = row.entry.id;
    entry["model"] = row.entry.model;
    entry["recipe"] = row.entry.recipe;
    entry["on"] = row.entry.cluster;
    entry["system"] = std::filesystem::path(row.entry.file).stem().string();
    entry["use"] = row.entry.use == ValidationUse::kFit ? "fit" : "check";
    entry["source"] = row.entry.source;
    entry["verdict"] = Verdict(row);
    if (row.entry.step) entry["measured_step_time_s"] = row.entry.step->value;
    if (row.predicted) {
      entry["predicted_step_time_s"] = row.predicted->value;
      if (row.entry.step) entry["relative_error"] = row.RelativeError();
    }
    if (!row.entry.unmodelled.empty()) entry["unmodelled"] = row.entry.unmodelled;
    if (!row.entry.known_fault.empty()) entry["known_fault"] = row.entry.known_fault;
    if (!row.error.empty()) entry["error"] = WithoutFolder(row.error, row.entry.file);
    json["entries"].push_back(std::move(entry));
  }
  return json;
}

Result<int> RunValidate(const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadPricingCatalogue(global));
  const std::vector<std::string> dirs = DataDirectories(global);
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<ValidationEntry> entries, LoadValidation(dirs));
  const std::vector<ValidationRow> rows = RunValidation(entries, catalogue, dirs, SharedStepConstants());
  int exit_code = 0;
  for (const ValidationRow& row : rows) {
    const std::string verdict = Verdict(row);
    if (verdict == "OFF" || verdict == "failed") exit_code = 1;
  }
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, ToJson(rows)));
    if (global.json_path == "-") return exit_code;
  }
  fmt::print("{:<32} {:<4} {:>10} {:>10} {:>7} {:>6}\n", "step (ms)", "use", "measured", "predicted", "error",
             "within");
  Summary fit, check;
  std::map<std::string, Summary> systems;  // by the name of the file
  for (const ValidationRow& row : rows) {
    if (!row.entry.unmodelled.empty() || !row.error.empty()) continue;
    fmt::print("{:<31} {:<3} {:>9.3f} {:>9.3f} {:>+6.1f}% {:>3.0f}% {}\n", row.entry.id.substr(0, 31),
               row.entry.use == ValidationUse::kFit ? "fit" : "chk", row.entry.step->value * 1e3,
               row.predicted->value * 1e3, 100 * row.RelativeError(), 100 * row.entry.tolerance, Verdict(row));
    if (!row.entry.known_fault.empty() && !row.WithinTolerance()) {
      fmt::print("{}", WrapText(row.entry.known_fault, 4, kColumns));
    }
    Count(row, row.entry.use == ValidationUse::kFit ? fit : check);
    Count(row, systems[std::filesystem::path(row.entry.file).stem().string()]);
  }
  fmt::print("\n{:<32} {:>5} {:>8} {:>8} {:>15}\n", "off by a factor", "steps", "mean", "worst", "past tolerance");
  const auto print = [](const std::string& name, const Summary& summary) {
    if (summary.modelled == 0) return;
    fmt::print("{:<32} {:>5} {:>8.2f} {:>8.2f} {:>15}\n", name.substr(0, 32), summary.modelled, summary.Mean(),
               summary.Worst(), summary.off);
  };
  for (const auto& [name, summary] : systems) print(name, summary);
  print("all that constants are fitted to", fit);
  print("all kept aside", check);
  bool heading = false;
  for (const ValidationRow& row : rows) {
    if (row.entry.unmodelled.empty() && row.error.empty()) continue;
    if (!heading) fmt::print("\nnot predicted\n");
    heading = true;
    const std::string reason = row.error.empty() ? row.entry.unmodelled : "failed: " + row.error;
    fmt::print("{}", WrapText(row.entry.id + ": " + reason, 2, kColumns));
  }
  return exit_code;
}

}  // namespace

void AddValidateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  CLI::App* command = app.add_subcommand("validate", "Predictions against published training steps");
  command->footer(
      "Exit code 1 when a prediction is further off than its tolerance and not pinned\nas a known fault "
      "(docs/validation.md).");
  command->callback([&global, exit_code] {
    const Result<int> result = RunValidate(global);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
