#pragma once

#include "cost/estimate.h"
#include "hw/catalogue.h"
#include "ops/collective.h"

namespace portolan {

// Time of one collective on `cluster`, over shape.devices devices packed into as few nodes as possible.
//
//   total = launch (latency) + communication,  communication = x + kRamp x / (x + kRampHalf)
//
// with x = bytes on the busiest link / its sustained rate. One device costs nothing.
// Within a node x = bytes sent (CollectiveBytesSent) / (device rate x sustained_fraction); a group of g devices of a
// full mesh has only its own g - 1 links, over PCIe more than two devices share their bridges, and a switch that adds
// (in_network_reduction) lets an all-reduce move fewer bytes. Across nodes, one NIC a device: (n - p) / n of an
// all-to-all's bytes leave the node of p devices, forwarded within the node to the NIC of the receiver's rail (NCCL
// PXN); an all-reduce is a reduce-scatter within the node, an all-reduce of 1/p between nodes (once through each NIC
// for two nodes, 2 (n-1)/n times for more: a ring) and an all-gather. The two levels run as a pipeline, so that the
// slower one counts.
//
// Direct stores inside a node (CollectiveTransport) pay no ramp and one barrier; across nodes they are not possible and
// the library's time is returned.
//
// Times are those of the collective's kernels, alone on the device: enqueueing outside a graph adds 5 to 30 us to a
// small one, and kernels that compete for memory stretch it (docs/cost-collectives.md: 2 to 4 times in published
// training traces). Known error: 8 % mean over the RCCL curve on MI300X (32 B to 16 GB, in a graph) and 7 % over the
// NCCL curves of A100, H100 and H200 above 4 MB; worst 29 % (A100, 16 MB).
Estimate CollectiveEstimate(const CollectiveShape& shape, const Cluster& cluster);

// A copy between pinned host memory and the device, one direction, alone on the link: latency + bytes / (host_link x
// sustained share).
Estimate HostCopyEstimate(const HostCopyShape& shape, const Accelerator& accelerator);

}  // namespace portolan
