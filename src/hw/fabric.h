#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "hw/fact.h"
#include "units/quantity.h"

namespace portolan {

enum class Topology {
  kSwitch,    // every pair at full device rate (NVSwitch, an Ethernet or InfiniBand fabric)
  kFullMesh,  // one link a pair: a group of g devices uses g-1 of the links (xGMI)
  kPcie,      // through the host bridges: pairs share them
};

// A network between devices of a node (scale-up) or between nodes (scale-out, one NIC a device).
struct Fabric {
  std::string id;  // "xgmi_mi350", "nvlink5", "nic_400g"
  std::string name;
  Topology topology = Topology::kSwitch;
  int max_devices = 8;                // of one scale-up domain; large for scale-out
  BytesPerSecond device_peak;         // per direction and device, all links
  BytesPerSecond link_peak;           // per direction; kFullMesh: one pair
  double sustained_fraction = 0.0;    // of device_peak, large all-to-all or all-reduce without in-network reduction
  bool in_network_reduction = false;  // NVLink SHARP: the switch adds
  Seconds latency;                    // one collective of a few bytes over 8 devices, from a captured graph
  std::map<std::string, Fact> facts;
  std::string file;
};

const char* TopologyName(Topology topology);

// Reads one fabric file (docs/hardware.md lists its keys). What an optional key defaults to is entered in `facts` as
// assumed. The id defaults to the file's name.
Result<Fabric> ReadFabric(const std::string& path);

}  // namespace portolan
