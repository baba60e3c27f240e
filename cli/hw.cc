#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "hw/diff.h"
#include "hw_values.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;

std::string Terabytes(BytesPerSecond rate) { return fmt::format("{:.2f}", rate.value / 1e12); }

std::string Teraflops(FlopsPerSecond rate) {
  if (rate.value <= 0) return "-";
  const double tera = rate.value / 1e12;
  return tera >= 10 ? fmt::format("{:.0f}", tera) : fmt::format("{:.2g}", tera);
}

void PrintList(const Catalogue& catalogue) {
  fmt::print("{:<10} {:>5} {:>7} {:>12} {:>14} {:>6}  {}\n", "id", "units", "mem GB", "mem TB/s", "16bit TFLOP/s",
             "fp8", "scale-up GB/s");
  for (const auto& [id, a] : catalogue.accelerators()) {
    std::string scale_up = a.scale_up_fabric;
    if (const auto fabric = catalogue.FindFabric(a.scale_up_fabric)) {
      scale_up += fmt::format(" {:.0f}", (*fabric)->device_peak.value / 1e9);
    }
    fmt::print("{:<10} {:>5} {:>7.0f} {:>4} of {:>4} {:>6} of {:>4} {:>6}  {}\n", id, a.compute_units,
               a.hbm.value / 1e9, Terabytes(a.hbm_sustained), Terabytes(a.hbm_peak),
               Teraflops(a.sustained_matrix[DType::kBf16]), Teraflops(a.peak_matrix[DType::kBf16]),
               Teraflops(a.peak_matrix[DType::kFp8E4m3]), scale_up);
  }
  fmt::print(
      "\n{}",
      WrapText(
          fmt::format(
              "\"X of Y\": what the best kernels sustain, of the data sheet's peak. 16bit: bf16, fp16 on chips without "
              "it. fp8: peak. Scale-up: each way. {} "
              "accelerators, {} fabrics; `portolan hw show ID` gives every value and its source, "
              "`--data-dir DIR` adds your own (docs/hardware.md).",
              catalogue.accelerators().size(), catalogue.fabrics().size()),
          0, kColumns));
}

void PrintFacts(const std::map<std::string, Fact>& facts) {
  for (const auto& [key, fact] : facts) {
    fmt::print("  {:<42} {:>18}  {}\n", key, ShowKeyed(key, fact.value), FactKindName(fact.kind));
    const std::string date = fact.date.empty() ? "" : " [" + fact.date + "]";
    fmt::print("{}", WrapText(fact.source + date, 6, kColumns));
  }
}

void PrintFabric(const Fabric& fabric) {
  fmt::print("{}: {}\n  topology {}, up to {} devices{}\n", fabric.id, fabric.name, TopologyName(fabric.topology),
             fabric.max_devices, fabric.in_network_reduction ? ", reduces in the network" : "");
  PrintFacts(fabric.facts);
}

void PrintAccelerator(const Catalogue& catalogue, const Accelerator& a) {
  fmt::print("{}", WrapText(fmt::format("{}: {} (vendor {}, family {}, isa {})", a.id, a.name, a.vendor,
                                        a.family.empty() ? "-" : a.family, a.isa.empty() ? "-" : a.isa),
                            0, kColumns));
  fmt::print("\nStated in {}\n", a.file);
  PrintFacts(a.facts);
  if (!a.inherited.empty()) {
    fmt::print("\nNot stated, taken from relatives\n");
    for (const auto& [key, from] : a.inherited) {
      const auto value = InheritedValue(a, key);
      fmt::print("  {:<42} {:>18}  inherited\n{}", key, value ? ShowKeyed(key, *value) : "",
                 WrapText(from, 6, kColumns));
    }
  }
  for (const std::string& id : {a.scale_up_fabric, a.scale_out_fabric}) {
    fmt::print("\n{} fabric ", id == a.scale_up_fabric ? "Scale-up" : "Scale-out");
    if (const auto fabric = catalogue.FindFabric(id)) {
      PrintFabric(**fabric);
    } else {
      fmt::print("{} (not defined)\n", id);
    }
  }
}

// Writes the document where --json asks for it, and says whether the text is still wanted.
enum class After { kPrint, kNothing };
Result<After> WriteJson(const GlobalOptions& global, const nlohmann::ordered_json& document) {
  if (global.json_path.empty()) return After::kPrint;
  PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, document));
  return global.json_path == "-" ? After::kNothing : After::kPrint;
}

Result<int> Show(const GlobalOptions& global, const std::string& id) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  if (const auto fabric = catalogue.fabrics().find(id);
      fabric != catalogue.fabrics().end() && catalogue.accelerators().count(id) == 0) {
    PORTOLAN_ASSIGN_OR_RETURN(const After after, WriteJson(global, HwShowJson(fabric->second)));
    if (after == After::kPrint) PrintFabric(fabric->second);
    return 0;
  }
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, catalogue.FindAccelerator(id));
  PORTOLAN_ASSIGN_OR_RETURN(const After after, WriteJson(global, HwShowJson(catalogue, *accelerator)));
  if (after == After::kPrint) PrintAccelerator(catalogue, *accelerator);
  return 0;
}

Result<int> Diff(const GlobalOptions& global, const std::string& id_a, const std::string& id_b) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* a, catalogue.FindAccelerator(id_a));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* b, catalogue.FindAccelerator(id_b));
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* fabric_a, catalogue.FindFabric(a->scale_up_fabric));
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* fabric_b, catalogue.FindFabric(b->scale_up_fabric));
  const std::vector<HardwareDifference> rows = DiffAccelerators(*a, *fabric_a, *b, *fabric_b);
  PORTOLAN_ASSIGN_OR_RETURN(const After after, WriteJson(global, HwDiffJson(*a, *b, rows)));
  if (after == After::kNothing) return 0;
  fmt::print("{}", WrapText(fmt::format("From {} to {}. Weightiest differences first; those within {:.0f} % are left "
                                        "out.",
                                        a->name, b->name, 100 * kSameRatio),
                            0, kColumns));
  fmt::print("\n{:<38} {:>15} {:>15}  {}\n", "", id_a, id_b, "ratio");
  bool inherited = false;
  for (const HardwareDifference& row : rows) {
    inherited = inherited || row.inherited_a || row.inherited_b;
    const std::string ratio = row.ratio > 0 ? fmt::format("  {:.2f}x", row.ratio) : "";
    fmt::print("{:<38} {:>15} {:>15}{}\n", row.quantity, (row.inherited_a ? "~" : "") + row.value_a,
               (row.inherited_b ? "~" : "") + row.value_b, ratio);
    fmt::print("{}", WrapText(row.allows, 4, kColumns));
  }
  if (rows.empty()) fmt::print("none\n");
  if (inherited) {
    fmt::print("\n{}", WrapText("~ the chip's file does not state it: taken from its relatives, as `portolan hw show "
                                "ID` tells.",
                                0, kColumns));
  }
  return 0;
}

Result<int> List(const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const After after, WriteJson(global, HwListJson(catalogue)));
  if (after == After::kPrint) PrintList(catalogue);
  return 0;
}

void Finish(const Result<int>& result, int* exit_code) { *exit_code = result ? *result : ReportError(result.error()); }

}  // namespace

void AddHwCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  CLI::App* hw = app.add_subcommand("hw", "Accelerators and fabrics, and how two differ");
  hw->require_subcommand(1);

  CLI::App* list = hw->add_subcommand("list", "All accelerators, one a line");
  list->callback([&global, exit_code] { Finish(List(global), exit_code); });

  CLI::App* show = hw->add_subcommand("show", "Every value of one, with its source");
  auto id = std::make_shared<std::string>();
  show->add_option("id", *id, "Accelerator or fabric")->type_name("ID")->required();
  show->callback([&global, exit_code, id] { Finish(Show(global, *id), exit_code); });

  CLI::App* diff = hw->add_subcommand("diff", "What a move from one to another changes and allows");
  auto from = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  diff->add_option("from", *from, "Accelerator that the job runs on now")->type_name("ID")->required();
  diff->add_option("to", *to, "Accelerator to move to")->type_name("ID")->required();
  diff->callback([&global, exit_code, from, to] { Finish(Diff(global, *from, *to), exit_code); });
}

}  // namespace portolan
