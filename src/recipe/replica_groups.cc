#include "recipe/replica_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipe/recipe_names.h"

namespace portolan {

Result<ReplicaGroups> ReplicaGroupsOf(const Recipe& recipe, const Cluster& cluster) {
  const int per_node = std::min(cluster.devices, cluster.devices_per_node);
  const int copies = recipe.replicas;
  if (copies == 1) return ReplicaGroups{cluster.devices, per_node, 1, 1};
  if (cluster.devices % copies != 0 || cluster.devices / copies < 2) {
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("recipe '{}': embedding.replicas must divide the {} devices into groups of at least two "
                    "(one device a group is sharding data_parallel), got {}",
                    recipe.id, cluster.devices, copies));
  }
  // Of the devices that stand next to each other, how many are in one node.
  const bool strided = recipe.replica_layout == ReplicaLayout::kStrided;
  const int group = cluster.devices / copies;
  const int neighbours = strided ? copies : group;
  if (neighbours % per_node != 0 && per_node % neighbours != 0) {
    return MakeError(
        ErrorCode::kInvalidValue,
        fmt::format("recipe '{}': embedding.replicas {} with replica_layout {} puts {} neighbours into a "
                    "group, which nodes of {} devices divide unevenly; accepted: a divisor or a multiple",
                    recipe.id, copies, EnumName(kReplicaLayoutNames, recipe.replica_layout), neighbours, per_node));
  }
  const int near = std::min(neighbours, per_node), far = std::max(1, per_node / neighbours);
  return strided ? ReplicaGroups{group, far, copies, near} : ReplicaGroups{group, near, copies, far};
}

}  // namespace portolan
