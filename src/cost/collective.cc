#include "cost/collective.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace portolan {
namespace {

// Ramp of the bandwidth with the message: filling the pipeline and switching from low-latency to bulk protocols costs
// up to kRamp, half of it once the links have been busy for kRampHalf. Fitted 2026-11-30 by least squares of
// log(predicted / measured) over 32 all-reduces of 8 devices: RCCL 2.22.3 on MI300X, 8 B to 16 GB in a graph
// (rocm-blogs mi300x-rccl-xgmi README), NCCL on A100, H100 and H200, 4 MB to 8 GB (Azure AI-benchmarking-guide,
// Azure_Results); mean error 6.9 %.
constexpr double kRamp = 97e-6;
constexpr double kRampHalf = 54e-6;

// NVLink SHARP: the switch adds, and a device sends each byte once instead of 2 (n-1)/n times, at this share of the
// rate without it. NCCL on 8 x H100 reaches 480 GB/s bus bandwidth against 370 GB/s without (nccl-tests issue #212,
// answer of 2024-05-06): 480 / 370 / 1.75 = 0.74. Read 2026-11-30.
constexpr double kInNetworkEfficiency = 0.74;

// An all-to-all between nodes reaches this share of the NIC's sustained rate: 0.55 from the 45 to 50 GB/s bus bandwidth
// that ROCm/cvs expects of 2 x 8 MI300X, 0.9 from the 50 GB/s that nccl-tests issue #267 finds right for 6 x 8 H100;
// the geometric mean. Read 2026-11-30.
constexpr double kNicAllToAllEfficiency = 0.70;
// With one device a node (each rail for itself) nothing is forwarded inside the node: the upper of the two figures.
constexpr double kRailAllToAllEfficiency = 0.9;

// Two devices share the bridge to the host (the usual 8-device PCIe server: 4 switches); assumed.
constexpr double kPcieSharing = 2.0;

// PCIe copies: 52 GB/s of 64 on H200 (Azure ND_H200_v5_results.md, NV bandwidth, read 2026-11-30); latency of a small
// asynchronous copy, assumed.
constexpr double kHostLinkSustained = 0.81;
constexpr double kHostCopyLatency = 8e-6;

// A flag barrier over peer memory between the devices of a node; assumed, two traversals of the links.
constexpr double kBarrierLatency = 5e-6;

double Ramp(double link_seconds) { return link_seconds + kRamp * link_seconds / (link_seconds + kRampHalf); }

// Fabric::latency is for 8 devices of a node; half of it is per kernel, half per step of a tree.
double NodeLatency(const Fabric& fabric, int devices) {
  return fabric.latency.value * (1.0 + std::log2(static_cast<double>(devices))) / 4.0;
}

// Fabric::latency of a scale-out fabric is for two nodes.
double NetworkLatency(const Fabric& fabric, int nodes) {
  return fabric.latency.value * (1.0 + std::log2(static_cast<double>(nodes))) / 2.0;
}

// Sustained bytes a second and direction that one of `group` devices of a node moves.
double NodeRate(const Fabric& fabric, int group, CollectiveKind kind) {
  double peak = fabric.device_peak.value;
  if (fabric.topology == Topology::kFullMesh) peak = std::min(peak, fabric.link_peak.value * (group - 1));
  // A ring crosses each shared bridge once a direction; an all-to-all sends all but the pair's own share through it.
  if (fabric.topology == Topology::kPcie && group > 2 && kind == CollectiveKind::kAllToAll) {
    peak /= std::max(1.0, kPcieSharing * (group - kPcieSharing) / (group - 1));
  }
  return peak * fabric.sustained_fraction;
}

// Bytes that one device sends within its node of `group` devices, in units that pass NodeRate.
double NodeBytes(CollectiveKind kind, double bytes, const Fabric& fabric, int group) {
  const double sent = CollectiveBytesSent({.kind = kind, .bytes = Bytes(bytes), .devices = group}).value;
  if (kind == CollectiveKind::kAllReduce && fabric.in_network_reduction) {
    return std::min(sent, bytes / kInNetworkEfficiency);
  }
  // On a mesh no single link passes the whole buffer at the device's rate: scatter, then all-gather.
  if (kind == CollectiveKind::kBroadcast && fabric.topology == Topology::kFullMesh) {
    return bytes * 2.0 * (group - 1) / group;
  }
  return sent;
}

// Bytes that one device sends through its NIC. `group` devices of each of `nodes` nodes take part. Two nodes exchange
// the partial sums of an all-reduce (a tree: each NIC carries its share once); more form rings through all devices,
// whose bytes spread over the NICs of a node.
double NetworkBytes(const CollectiveShape& shape, double bytes, int group, int nodes) {
  const double other_nodes = static_cast<double>(nodes - 1) / nodes;
  const double others = static_cast<double>(shape.devices - 1) / shape.devices;
  switch (shape.kind) {
    case CollectiveKind::kAllToAll:
      return bytes * other_nodes / (group == 1 ? kRailAllToAllEfficiency : kNicAllToAllEfficiency);
    case CollectiveKind::kAllReduce:
      return (nodes == 2 ? 1.0 : 2.0 * others) * bytes / group;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return others * bytes / group;
    case CollectiveKind::kBroadcast:
      return bytes / group;
  }
  PORTOLAN_CHECK(false, "collective without a size");
}

// Time on the busiest link at its sustained rate.
double LinkSeconds(const CollectiveShape& shape, const Cluster& cluster, int group, int nodes) {
  const double imbalance = shape.kind == CollectiveKind::kAllToAll ? std::max(shape.imbalance, 1.0) : 1.0;
  const double bytes = shape.bytes.value * imbalance;
  double within = 0.0;
  if (group > 1) {
    const double rate = NodeRate(cluster.scale_up, group, shape.kind);
    PORTOLAN_CHECK(rate > 0, "a scale-up fabric without a rate");
    within = NodeBytes(shape.kind, bytes, cluster.scale_up, group) / rate;
  }
  if (nodes == 1) return within;
  const double network_rate = cluster.scale_out.device_peak.value * cluster.scale_out.sustained_fraction;
  PORTOLAN_CHECK(network_rate > 0, "a scale-out fabric without a rate");
  return std::max(within, NetworkBytes(shape, bytes, group, nodes) / network_rate);
}

}  // namespace

Estimate CollectiveEstimate(const CollectiveShape& shape, const Cluster& cluster) {
  PORTOLAN_CHECK(shape.devices >= 1 && shape.bytes.value >= 0, "a collective has devices and a size");
  PORTOLAN_CHECK(cluster.devices_per_node >= 1, "a node has devices");
  if (shape.devices == 1) return {};
  const int group = std::min(shape.devices, cluster.devices_per_node);
  const int nodes = (shape.devices + group - 1) / group;
  Estimate estimate;
  if (shape.transport == CollectiveTransport::kDirectStores && nodes == 1) {
    estimate.launch = Seconds(kBarrierLatency);
    estimate.communication = Seconds(LinkSeconds(shape, cluster, group, nodes));
  } else {
    if (group > 1) estimate.launch += Seconds(NodeLatency(cluster.scale_up, group));
    if (nodes > 1) estimate.launch += Seconds(NetworkLatency(cluster.scale_out, nodes));
    estimate.communication = Seconds(Ramp(LinkSeconds(shape, cluster, group, nodes)));
  }
  estimate.total = estimate.launch + estimate.communication;
  return estimate;
}

Estimate HostCopyEstimate(const HostCopyShape& shape, const Accelerator& accelerator) {
  PORTOLAN_CHECK(shape.bytes.value >= 0, "a copy has a size");
  if (shape.bytes.value == 0) return {};
  PORTOLAN_CHECK(accelerator.host_link.value > 0, "an accelerator without a host link");
  Estimate estimate;
  estimate.launch = Seconds(kHostCopyLatency);
  estimate.communication = shape.bytes / (accelerator.host_link * kHostLinkSustained);
  estimate.total = estimate.launch + estimate.communication;
  return estimate;
}

}  // namespace portolan
