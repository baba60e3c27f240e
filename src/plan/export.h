#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "plan/placement.h"

namespace portolan {

// The tables' sharding in the form of TorchRec's ShardingPlan._serialize (meta-pytorch/torchrec,
// torchrec/distributed/types.py): for each table its sharding type, compute kernel, ranks, and shards with sizes,
// offsets and placement; docs/plan.md has the Python lines that build the plan from it. Rows are dealt in blocks of
// ceil(rows / shards), columns in blocks of a multiple of four. TorchRec splits rows over all ranks or over one node:
// tables that Portolan splits over some of the ranks are widened to all, and listed under "widened". With replicas the
// plan is that of one sharding group, as DMPCollection takes it; how many devices that is and where its copies are
// stand beside it.
nlohmann::ordered_json TorchRecPlanJson(const Model& model, const Recipe& recipe, const Placement& placement,
                                        const Cluster& cluster);

// A launch line and the environment variables that the vendor documents for training on this cluster, each with its
// source, as shell text.
std::string LaunchText(const Recipe& recipe, const Cluster& cluster);

}  // namespace portolan
