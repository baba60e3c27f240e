#include "hw_values.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace portolan {
namespace {

using nlohmann::ordered_json;

struct Member {
  const char* key;
  double (*value)(const Accelerator&);
};
constexpr std::array kMembers = {
    Member{"wave_size", [](const Accelerator& a) { return static_cast<double>(a.wave_size); }},
    Member{"clock_boost_hz", [](const Accelerator& a) { return a.clock_boost.value; }},
    Member{"peak_vector_fp32_flops_per_s", [](const Accelerator& a) { return a.peak_vector_fp32.value; }},
    Member{"transcendental_per_clock_per_unit",
           [](const Accelerator& a) { return a.transcendental_per_s / (a.compute_units * a.clock_boost.value); }},
    Member{"shared_memory_bytes_per_unit", [](const Accelerator& a) { return a.shared_memory_per_unit.value; }},
    Member{"register_bytes_per_unit", [](const Accelerator& a) { return a.registers_per_unit.value; }},
    Member{"l2_bytes_per_die", [](const Accelerator& a) { return a.l2.value / a.dies; }},
    Member{"l2_bytes_per_s", [](const Accelerator& a) { return a.l2_rate.value; }},
    Member{"mall_bytes", [](const Accelerator& a) { return a.mall.value; }},
    Member{"mall_bytes_per_s", [](const Accelerator& a) { return a.mall_rate.value; }},
    Member{"hbm_sustained_bytes_per_s", [](const Accelerator& a) { return a.hbm_sustained.value; }},
    Member{"memory_line_bytes", [](const Accelerator& a) { return a.memory_line.value; }},
    Member{"kernel_fixed_s", [](const Accelerator& a) { return a.kernel_fixed.value; }},
    Member{"host_launch_s", [](const Accelerator& a) { return a.host_launch.value; }},
    Member{"host_link_bytes_per_s", [](const Accelerator& a) { return a.host_link.value; }},
};
constexpr const char* kPeak = "peak_matrix_flops_per_s.";
constexpr const char* kSustained = "sustained_matrix_flops_per_s.";

bool StartsWith(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }
bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string Prefixed(double value, const char* unit) {
  if (value == 0) return fmt::format("0 {}", unit);
  constexpr std::array kPrefixes = {"n", "u", "m", "", "k", "M", "G", "T", "P"};
  constexpr int kOne = 3;
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value) * 1.00005) / 3));
  const int prefix = std::clamp(power + kOne, 0, static_cast<int>(kPrefixes.size()) - 1);
  return fmt::format("{:.4g} {}{}", value * std::pow(1000.0, kOne - prefix), kPrefixes[static_cast<size_t>(prefix)],
                     unit);
}

ordered_json FactsJson(const std::map<std::string, Fact>& facts) {
  ordered_json json = ordered_json::object();
  for (const auto& [key, fact] : facts) {
    json[key] = {{"value", fact.value}, {"kind", FactKindName(fact.kind)}, {"source", fact.source}};
    if (!fact.date.empty()) json[key]["date"] = fact.date;
  }
  return json;
}

ordered_json RatesJson(const FlopsByDType& rates) {
  ordered_json json = ordered_json::object();
  for (int t = 0; t < kDTypeCount; ++t) {
    const DType dtype = static_cast<DType>(t);
    if (rates[dtype].value > 0) json[DTypeName(dtype)] = rates[dtype].value;
  }
  return json;
}

ordered_json AcceleratorJson(const Accelerator& a) {
  ordered_json json;
  json["id"] = a.id;
  json["name"] = a.name;
  json["vendor"] = a.vendor;
  json["family"] = a.family;
  json["isa"] = a.isa;
  json["compute_units"] = a.compute_units;
  json["hbm_bytes"] = a.hbm.value;
  json["hbm_peak_bytes_per_s"] = a.hbm_peak.value;
  json["hbm_sustained_bytes_per_s"] = a.hbm_sustained.value;
  json["peak_matrix_flops_per_s"] = RatesJson(a.peak_matrix);
  json["sustained_matrix_flops_per_s"] = RatesJson(a.sustained_matrix);
  json["scale_up_fabric"] = a.scale_up_fabric;
  json["scale_out_fabric"] = a.scale_out_fabric;
  return json;
}

ordered_json FabricJson(const Fabric& fabric) {
  ordered_json json;
  json["id"] = fabric.id;
  json["name"] = fabric.name;
  json["topology"] = TopologyName(fabric.topology);
  json["max_devices"] = fabric.max_devices;
  json["in_network_reduction"] = fabric.in_network_reduction;
  json["device_peak_bytes_per_s"] = fabric.device_peak.value;
  json["link_peak_bytes_per_s"] = fabric.link_peak.value;
  return json;
}

}  // namespace

std::optional<double> InheritedValue(const Accelerator& accelerator, const std::string& key) {
  for (const Member& member : kMembers) {
    if (key == member.key) return member.value(accelerator);
  }
  for (const auto& [start, rates] : {std::pair<std::string, const FlopsByDType&>{kPeak, accelerator.peak_matrix},
                                     {kSustained, accelerator.sustained_matrix}}) {
    if (!StartsWith(key, start)) continue;
    for (int t = 0; t < kDTypeCount; ++t) {
      const DType dtype = static_cast<DType>(t);
      if (key == start + DTypeName(dtype)) return rates[dtype].value;
    }
  }
  return std::nullopt;
}

std::string ShowKeyed(const std::string& key, double value) {
  const std::string plain = fmt::format("{:.10g}", value);
  if (key.find("flops_per_s") != std::string::npos) return Prefixed(value, "FLOP/s");
  if (EndsWith(key, "_bytes_per_s")) return Prefixed(value, "B/s");
  if (EndsWith(key, "_hz")) return Prefixed(value, "Hz");
  if (EndsWith(key, "_s")) return Prefixed(value, "s");
  if (EndsWith(key, "_w")) return plain + " W";
  if (key == "hbm_bytes") return fmt::format("{:.6g} GB", value / 1e9);
  if (key.find("_bytes") != std::string::npos) {
    if (value < 1024) return plain + " B";
    return value < 1048576 ? fmt::format("{:.6g} KiB", value / 1024) : fmt::format("{:.6g} MiB", value / 1048576);
  }
  return plain;
}

ordered_json HwListJson(const Catalogue& catalogue) {
  ordered_json json;
  json["schema"] = "portolan.hw_list/1";
  json["accelerators"] = ordered_json::array();
  for (const auto& [id, accelerator] : catalogue.accelerators()) {
    json["accelerators"].push_back(AcceleratorJson(accelerator));
  }
  json["fabrics"] = ordered_json::array();
  for (const auto& [id, fabric] : catalogue.fabrics()) json["fabrics"].push_back(FabricJson(fabric));
  return json;
}

ordered_json HwShowJson(const Catalogue& catalogue, const Accelerator& accelerator) {
  ordered_json json;
  json["schema"] = "portolan.hw_show/1";
  json["kind"] = "accelerator";
  json.update(AcceleratorJson(accelerator));
  json["facts"] = FactsJson(accelerator.facts);
  json["inherited"] = ordered_json::object();
  for (const auto& [key, from] : accelerator.inherited) {
    ordered_json& entry = json["inherited"][key];
    if (const auto value = InheritedValue(accelerator, key)) entry["value"] = *value;
    entry["from"] = from;
  }
  json["fabrics"] = ordered_json::array();
  for (const std::string& id : {accelerator.scale_up_fabric, accelerator.scale_out_fabric}) {
    const auto fabric = catalogue.fabrics().find(id);
    if (fabric == catalogue.fabrics().end()) continue;
    ordered_json entry = FabricJson(fabric->second);
    entry["facts"] = FactsJson(fabric->second.facts);
    json["fabrics"].push_back(std::move(entry));
  }
  return json;
}

ordered_json HwShowJson(const Fabric& fabric) {
  ordered_json json;
  json["schema"] = "portolan.hw_show/1";
  json["kind"] = "fabric";
  json.update(FabricJson(fabric));
  json["facts"] = FactsJson(fabric.facts);
  return json;
}

ordered_json HwDiffJson(const Accelerator& a, const Accelerator& b, const std::vector<HardwareDifference>& rows) {
  ordered_json json;
  json["schema"] = "portolan.hw_diff/1";
  json["from"] = a.id;
  json["to"] = b.id;
  json["differences"] = ordered_json::array();
  for (const HardwareDifference& row : rows) {
    ordered_json entry;
    entry["quantity"] = row.quantity;
    entry["from"] = row.value_a;
    entry["to"] = row.value_b;
    entry["from_inherited"] = row.inherited_a;
    entry["to_inherited"] = row.inherited_b;
    if (row.ratio > 0) entry["ratio"] = row.ratio;
    entry["weight"] = row.weight;
    entry["allows"] = row.allows;
    json["differences"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace portolan
