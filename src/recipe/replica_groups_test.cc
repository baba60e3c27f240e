#include "recipe/replica_groups.h"

#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

Result<ReplicaGroups> Groups(const std::string& cluster, int replicas, ReplicaLayout layout) {
  Recipe recipe;
  recipe.id = "r";
  recipe.replicas = replicas;
  recipe.replica_layout = layout;
  return ReplicaGroupsOf(recipe, RuleTestCluster(cluster));
}
void Expect(const std::string& cluster, int replicas, ReplicaLayout layout, const ReplicaGroups& want) {
  const Result<ReplicaGroups> groups = Groups(cluster, replicas, layout);
  ASSERT_TRUE(groups) << FormatError(groups.error());
  EXPECT_EQ(groups->group_devices, want.group_devices);
  EXPECT_EQ(groups->group_per_node, want.group_per_node);
  EXPECT_EQ(groups->copies, want.copies);
  EXPECT_EQ(groups->copies_per_node, want.copies_per_node);
}
constexpr ReplicaLayout kStrided = ReplicaLayout::kStrided, kContiguous = ReplicaLayout::kContiguous;

TEST(ReplicaGroupsTest, ByHand) {
  Expect("16xh100", 1, kStrided, {16, 8, 1, 1});
  // TorchRec's example: 2 nodes of 4, groups 0, 2, 4, 6 and 1, 3, 5, 7; copies on 0 and 1, 2 and 3, ...
  Expect("2x4xh100", 2, kStrided, {4, 2, 2, 2});
  // The same devices, a node a group: copies on 0 and 4.
  Expect("2x4xh100", 2, kContiguous, {4, 4, 2, 1});
  Expect("64xh100", 8, kStrided, {8, 1, 8, 8});
  Expect("64xh100", 8, kContiguous, {8, 8, 8, 1});
  // Copies over two nodes: a group has one device in every second node.
  Expect("64xh100", 16, kStrided, {4, 1, 16, 8});
  // Two groups in each node.
  Expect("64xh100", 16, kContiguous, {4, 4, 16, 2});
  Expect("8xh100", 2, kStrided, {4, 4, 2, 2});
}

// A device is in one group of each kind: together they hold them all.
TEST(ReplicaGroupsTest, GroupsTimesCopiesAreTheDevices) {
  for (const char* cluster : {"4xh100", "8xmi350x", "2x4xh100", "64xmi350x", "128xb200"}) {
    const int devices = RuleTestCluster(cluster).devices;
    for (int replicas = 2; 2 * replicas <= devices; replicas *= 2) {
      for (const ReplicaLayout layout : {kStrided, kContiguous}) {
        const Result<ReplicaGroups> groups = Groups(cluster, replicas, layout);
        ASSERT_TRUE(groups) << cluster << " " << replicas;
        EXPECT_EQ(groups->group_devices * groups->copies, devices);
        EXPECT_EQ(groups->group_devices % groups->group_per_node, 0);
        EXPECT_EQ(groups->copies % groups->copies_per_node, 0);
      }
    }
  }
}

TEST(ReplicaGroupsTest, Errors) {
  EXPECT_EQ(
      Groups("8xh100", 3, kStrided).error().message,
      "recipe 'r': embedding.replicas must divide the 8 devices into groups of at least two (one device a group is "
      "sharding data_parallel), got 3");
  for (const int replicas : {8, 16, 5}) EXPECT_FALSE(Groups("8xh100", replicas, kStrided)) << replicas;
  EXPECT_FALSE(Groups("h100", 2, kStrided));
  // 24 devices on 3 nodes: 12 neighbours straddle a node's end.
  EXPECT_TRUE(Groups("24xh100", 2, kStrided));
  EXPECT_EQ(
      Groups("24xh100", 2, kContiguous).error().message,
      "recipe 'r': embedding.replicas 2 with replica_layout contiguous puts 12 neighbours into a group, which nodes "
      "of 8 devices divide unevenly; accepted: a divisor or a multiple");
}

}  // namespace
}  // namespace portolan
