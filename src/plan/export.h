#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "plan/placement.h"

namespace portolan {

// The tables' sharding in the shape of a TorchRec EmbeddingShardingPlan (meta-pytorch/torchrec,
// torchrec/distributed/types.py: ParameterSharding and EnumerableShardingSpec): for each table its sharding type,
// compute kernel, ranks and shard sizes, offsets and placement. Rows of a row-split table are dealt as TorchRec does,
// in blocks of ceil(rows / shards).
nlohmann::ordered_json TorchRecPlanJson(const Model& model, const Placement& placement, const Cluster& cluster);

// A launch line and the environment variables that the vendor documents for training on this cluster, each with its
// source, as shell text.
std::string LaunchText(const Recipe& recipe, const Cluster& cluster);

}  // namespace portolan
