#pragma once

#include <optional>

#include "base/error.h"
#include "hw/catalogue.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

// Which devices take part in the collectives of a step. Holds a reference: `cluster` must outlive it.
class CollectiveScopes {
 public:
  // The recipe's replicas must fit the cluster (CheckReplicas).
  CollectiveScopes(const Recipe& recipe, const Cluster& cluster);

  const Cluster& all() const { return cluster_; }  // dense gradients
  // One sharding group: indices, rows and their gradients. The whole cluster without replicas.
  const Cluster& group() const { return group_ ? *group_ : cluster_; }
  // The rest have the fabrics only, no accelerator.
  const Cluster& node() const { return node_; }      // a group's devices in one node
  const Cluster& across() const { return across_; }  // one device of each node of a group
  const Cluster& copies() const { return copies_; }  // the devices that hold one shard

 private:
  const Cluster& cluster_;
  std::optional<Cluster> group_;
  Cluster node_, across_, copies_;
};

// The recipe as one sharding group sees it: its share of the global batch.
Recipe GroupRecipe(const Recipe& recipe);

// Refused: replicas that do not fit the devices (ReplicaGroupsOf), and replicas of tables in host memory.
Status CheckReplicas(const Model& model, const Recipe& recipe, const Cluster& cluster);

}  // namespace portolan
