#include "plan/collective_scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "plan/host_tables.h"
#include "recipe/replica_groups.h"

namespace portolan {
namespace {

Cluster Devices(const Cluster& cluster, int devices, int per_node) {
  Cluster scope;
  scope.scale_up = cluster.scale_up;
  scope.scale_out = cluster.scale_out;
  scope.devices = devices;
  scope.devices_per_node = per_node;
  return scope;
}

}  // namespace

CollectiveScopes::CollectiveScopes(const Recipe& recipe, const Cluster& cluster) : cluster_(cluster) {
  const Result<ReplicaGroups> groups = ReplicaGroupsOf(recipe, cluster);
  PORTOLAN_CHECK(groups.has_value(), "replicas that nobody checked");
  const int nodes = (groups->group_devices + groups->group_per_node - 1) / groups->group_per_node;
  node_ = Devices(cluster, groups->group_per_node, groups->group_per_node);
  across_ = Devices(cluster, nodes, 1);
  copies_ = Devices(cluster, groups->copies, groups->copies_per_node);
  if (groups->copies == 1) return;
  group_ = cluster;
  group_->devices = groups->group_devices;
  group_->devices_per_node = groups->group_per_node;
}

Recipe GroupRecipe(const Recipe& recipe) {
  Recipe group = recipe;
  if (recipe.replicas > 1 && recipe.global_batch > 0) {
    group.global_batch = std::llround(static_cast<double>(recipe.global_batch) / recipe.replicas);
  }
  return group;
}

Status CheckReplicas(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  if (recipe.replicas == 1) return {};
  const Result<ReplicaGroups> groups = ReplicaGroupsOf(recipe, cluster);
  if (!groups) return tl::make_unexpected(groups.error());
  if (AnyInHostMemory(model, recipe)) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("recipe '{}': embedding.replicas {} with tables in host memory: copies of a cache are "
                                 "not averaged; accepted: replicas 1, or no host tables",
                                 recipe.id, recipe.replicas));
  }
  return {};
}

}  // namespace portolan
