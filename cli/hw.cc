#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "commands.h"
#include "hw/diff.h"

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
  fmt::print("{:<10} {:>5} {:>7} {:>11} {:>16} {:>9} {:<12}\n", "id", "units", "HBM GB", "HBM TB/s", "bf16 TFLOP/s",
             "tf32 peak", "scale-up");
  for (const auto& [id, a] : catalogue.accelerators()) {
    fmt::print("{:<10} {:>5} {:>7.0f} {:>4} of {:>4} {:>6} of {:>6} {:>9} {:<12}\n", id, a.compute_units,
               a.hbm.value / 1e9, Terabytes(a.hbm_sustained), Terabytes(a.hbm_peak),
               Teraflops(a.sustained_matrix[DType::kBf16]), Teraflops(a.peak_matrix[DType::kBf16]),
               Teraflops(a.peak_matrix[DType::kTf32]), a.scale_up_fabric);
  }
  fmt::print(
      "\nSustained of peak. {} accelerators, {} fabrics; `portolan hw show ID` gives every value and\n"
      "its source, `--data-dir DIR` adds your own (docs/hardware.md).\n",
      catalogue.accelerators().size(), catalogue.fabrics().size());
}

void PrintFacts(const std::map<std::string, Fact>& facts) {
  for (const auto& [key, fact] : facts) {
    fmt::print("  {:<44} {:>11.6g}  {}\n", key, fact.value, FactKindName(fact.kind));
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
  fmt::print("{}: {} (vendor {}, family {}, isa {})\n", a.id, a.name, a.vendor, a.family.empty() ? "-" : a.family,
             a.isa.empty() ? "-" : a.isa);
  fmt::print("\nStated in {}:\n", a.file);
  PrintFacts(a.facts);
  if (!a.inherited.empty()) {
    fmt::print("\nNot stated, taken from relatives:\n");
    for (const auto& [key, from] : a.inherited) {
      fmt::print("  {}\n{}", key, WrapText(from, 6, kColumns));
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

Result<int> Show(const GlobalOptions& global, const std::string& id) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  if (const auto fabric = catalogue.fabrics().find(id);
      fabric != catalogue.fabrics().end() && catalogue.accelerators().count(id) == 0) {
    PrintFabric(fabric->second);
    return 0;
  }
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, catalogue.FindAccelerator(id));
  PrintAccelerator(catalogue, *accelerator);
  return 0;
}

Result<int> Diff(const GlobalOptions& global, const std::string& id_a, const std::string& id_b) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* a, catalogue.FindAccelerator(id_a));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* b, catalogue.FindAccelerator(id_b));
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* fabric_a, catalogue.FindFabric(a->scale_up_fabric));
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* fabric_b, catalogue.FindFabric(b->scale_up_fabric));
  fmt::print("From {} to {}.\nDifferences that matter to training, largest first:\n\n", a->name, b->name);
  fmt::print("{:<40} {:>13} {:>13}  {}\n", "", id_a, id_b, "ratio");
  const std::vector<HardwareDifference> rows = DiffAccelerators(*a, *fabric_a, *b, *fabric_b);
  for (const HardwareDifference& row : rows) {
    const std::string ratio = row.ratio > 0 ? fmt::format("{:.2f}x", row.ratio) : "";
    fmt::print("{:<40} {:>13} {:>13}  {}\n", row.quantity, row.value_a, row.value_b, ratio);
    fmt::print("{}", WrapText(row.allows, 4, kColumns));
  }
  if (rows.empty()) fmt::print("none\n");
  return 0;
}

Result<int> List(const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, LoadCatalogue(global));
  PrintList(catalogue);
  return 0;
}

void Finish(const Result<int>& result, int* exit_code) { *exit_code = result ? *result : ReportError(result.error()); }

}  // namespace

void AddHwCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  CLI::App* hw = app.add_subcommand("hw", "The accelerators and fabrics, and what differs between two of them");
  hw->require_subcommand(1);

  CLI::App* list = hw->add_subcommand("list", "All accelerators, one a line");
  list->callback([&global, exit_code] { Finish(List(global), exit_code); });

  CLI::App* show = hw->add_subcommand("show", "Every value of one accelerator or fabric, with its source");
  auto id = std::make_shared<std::string>();
  show->add_option("ID", *id, "accelerator or fabric id")->required();
  show->callback([&global, exit_code, id] { Finish(Show(global, *id), exit_code); });

  CLI::App* diff = hw->add_subcommand("diff", "What a move from A to B changes and allows");
  auto from = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  diff->add_option("A", *from, "accelerator that the job runs on now")->required();
  diff->add_option("B", *to, "accelerator to move to")->required();
  diff->callback([&global, exit_code, from, to] { Finish(Diff(global, *from, *to), exit_code); });
}

}  // namespace portolan
