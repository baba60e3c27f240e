#pragma once

#include "base/error.h"
#include "hw/catalogue.h"
#include "recipe/recipe.h"

namespace portolan {

// The two process groups of 2D sharding (Recipe::replicas; TorchRec's DMPCollection, torchrec/distributed/
// model_parallel.py; arXiv 2508.03854): each sharding group holds every sharded table and exchanges rows for its own
// samples only; the devices that hold copies of one shard average them. Every group of a kind has the same shape, a
// device belongs to one of each.
struct ReplicaGroups {
  int group_devices = 1;   // of one sharding group
  int group_per_node = 1;  // of them, in one node
  int copies = 1;          // of a shard
  int copies_per_node = 1;
};

// With R copies on nodes of P devices. Strided: rank r is in sharding group r mod R, the copies of a shard are R
// neighbours. Contiguous: D / R consecutive ranks are a sharding group. One copy: the whole cluster is the group.
// Refused, naming what would be accepted: R that does not divide the devices or leaves a group of one device, and
// groups that nodes divide unevenly.
Result<ReplicaGroups> ReplicaGroupsOf(const Recipe& recipe, const Cluster& cluster);

}  // namespace portolan
