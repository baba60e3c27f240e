#include "hw/fabric.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "base/yaml.h"
#include "hw/read_head.h"

namespace portolan {
namespace {

struct TopologyRow {
  Topology topology;
  const char* name;
  // Defaults of the two optional numbers, as entered in `facts`.
  double sustained_fraction;
  double latency_s;
};
// 2026-11-30, the built-in fabric files: NVLink all-reduce 0.74 to 0.77 of peak, xGMI 0.71 to 0.73; 11 us and 8 us.
constexpr std::array kTopologies = {
    TopologyRow{Topology::kSwitch, "switch", 0.75, 11e-6},
    TopologyRow{Topology::kFullMesh, "full_mesh", 0.72, 8e-6},
    TopologyRow{Topology::kPcie, "pcie", 0.70, 15e-6},
};
constexpr double kMostDevices = 1 << 20;

const TopologyRow& Row(Topology topology) {
  for (const TopologyRow& row : kTopologies) {
    if (row.topology == topology) return row;
  }
  PORTOLAN_CHECK(false, "topology without a row");
}

}  // namespace

const char* TopologyName(Topology topology) { return Row(topology).name; }

Result<Fabric> ReadFabric(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue root, YamlValue::Load(path));
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, root.Map());
  Fabric fabric;
  fabric.file = path;
  fabric.id = ReadHardwareId(&map);
  fabric.name = map.String("name", fabric.id);
  std::vector<std::string> names;
  for (const TopologyRow& row : kTopologies) names.emplace_back(row.name);
  const std::string topology = map.OneOf("topology", names);
  for (const TopologyRow& row : kTopologies) {
    if (topology == row.name) fabric.topology = row.topology;
  }
  fabric.in_network_reduction = map.Bool("in_network_reduction", false);

  const auto read = [&](const char* key, Range range) {
    map.Visit(key, [&](const YamlValue& value) -> Status {
      PORTOLAN_ASSIGN_OR_RETURN(const Fact fact, ReadFact(value, range));
      fabric.facts[key] = fact;
      return {};
    });
  };
  if (!map.Has("device_peak_bytes_per_s")) map.Number("device_peak_bytes_per_s", kPositive);
  read("device_peak_bytes_per_s", {1e6, 1e15});
  read("link_peak_bytes_per_s", {1e6, 1e15});
  read("max_devices", {1, kMostDevices});
  read("sustained_fraction", {0.01, 1.0});
  read("latency_s", {1e-9, 1.0});
  if (map.ok() && fabric.facts.count("max_devices") != 0) {
    const double count = fabric.facts["max_devices"].value;
    if (count != std::floor(count)) {
      map.Fail(map.Find("max_devices")->MakeError(ErrorCode::kInvalidValue, "value must be a whole number"));
    }
  }
  PORTOLAN_RETURN_IF_ERROR(map.Finish());

  const auto assume = [&](const char* key, double value, const char* source) {
    if (fabric.facts.count(key) == 0) fabric.facts[key] = Fact{value, FactKind::kAssumed, source, ""};
  };
  const TopologyRow& row = Row(fabric.topology);
  assume("max_devices", 8, "default: a node of 8");
  assume("sustained_fraction", row.sustained_fraction, "default of the topology");
  assume("latency_s", row.latency_s, "default of the topology");
  const int max_devices = static_cast<int>(fabric.facts["max_devices"].value);
  const double device_peak = fabric.facts["device_peak_bytes_per_s"].value;
  if (fabric.topology == Topology::kFullMesh && max_devices > 1) {
    assume("link_peak_bytes_per_s", device_peak / (max_devices - 1), "default: device_peak / (max_devices - 1)");
  }
  assume("link_peak_bytes_per_s", device_peak, "default: device_peak");
  fabric.max_devices = max_devices;
  fabric.device_peak = BytesPerSecond(device_peak);
  fabric.link_peak = BytesPerSecond(fabric.facts["link_peak_bytes_per_s"].value);
  fabric.sustained_fraction = fabric.facts["sustained_fraction"].value;
  fabric.latency = Seconds(fabric.facts["latency_s"].value);
  return fabric;
}

}  // namespace portolan
