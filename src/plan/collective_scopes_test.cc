#include "plan/collective_scopes.h"

#include "cost/collective.h"
#include "plan/step_pricer.h"
#include "plan/test_inputs.h"

namespace portolan {
namespace {

// Two tables of 1e6 x 64 fp32 rows, whole or by row; Adagrad keeps as much state.
Model TwoTables() {
  return ModelFromText(
      "model: two\ndense_features: 8\ntables:\n  - {name: a, rows: 1e6, dim: 64, lookups: 4}\n"
      "  - {name: b, rows: 1e6, dim: 64, lookups: 4}\nblocks:\n"
      "  - {name: top, type: mlp, input: embeddings, widths: [64, 1]}\n"
      "training: {embedding_optimizer: adagrad}\n");
}
Recipe ByRow(int replicas, ReplicaLayout layout = ReplicaLayout::kStrided) {
  Recipe recipe = DefaultRecipe();
  recipe.launch = Launch::kGraph;
  recipe.sharding = Sharding::kRow;
  recipe.replicas = replicas;
  recipe.replica_layout = layout;
  return recipe;
}
const Task& Find(const StepGraph& graph, const std::string& name) {
  for (const Task& task : graph.tasks) {
    if (task.name == name) return task;
  }
  ADD_FAILURE() << "no task " << name;
  static const Task kNone;
  return kNone;
}
Seconds Collective(CollectiveKind kind, double bytes, const Cluster& cluster) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.bytes = Bytes(bytes);
  shape.devices = cluster.devices;
  return CollectiveEstimate(shape, cluster).total;
}

// 16 H100 on two nodes, two copies, each a node: a device holds 2 x 1e6 x 64 x 4 / 8 = 64 MB of rows and as much state.
// Its group looks up for 8 x 1,024 samples; every device receives 2 sums of 64 fp32 a sample of its own from each of 8
// shards, 8 x 1,024 x 128 x 4 / 8 x 8 = 4.19 MB, over NVLink alone. Rows and state are then averaged by pairs of
// devices of different nodes.
TEST(CollectiveScopesTest, HandSumsOfTwoNodes) {
  const Cluster cluster = TestCluster("16xh100");
  const StepEstimate estimate = EstimateOrFail(TwoTables(), ByRow(2, ReplicaLayout::kContiguous), cluster);
  EXPECT_EQ(estimate.placement.ranks.size(), 8u);
  EXPECT_DOUBLE_EQ(estimate.memory.tables.value, 64e6);
  EXPECT_DOUBLE_EQ(estimate.memory.table_state.value, 64e6);
  EXPECT_EQ(estimate.global_batch, 16 * 1024);
  Cluster node = cluster;
  node.devices = 8;
  EXPECT_DOUBLE_EQ(Find(estimate.graph, "embedding_exchange").estimate.total.value,
                   Collective(CollectiveKind::kAllToAll, 8.0 * 1024 * 128 * 4, node).value);
  Cluster pair = cluster;
  pair.devices = 2;
  pair.devices_per_node = 1;
  EXPECT_DOUBLE_EQ(Find(estimate.graph, "replica_sync").estimate.total.value,
                   2 * Collective(CollectiveKind::kAllReduce, 64e6, pair).value);
  // Dense gradients are still reduced over all devices; the layers read each table's 64 columns with the same weights.
  const double dense = (64 + 1) * 64 + 64 + 1;
  EXPECT_DOUBLE_EQ(Find(estimate.graph, "dense_gradient_0").estimate.total.value,
                   Collective(CollectiveKind::kAllReduce, dense * 4, cluster).value);
}

// Strided: a group has four devices of either node, so that its exchange takes the NICs; copies are neighbours.
TEST(CollectiveScopesTest, HandSumsOfNeighbours) {
  const Cluster cluster = TestCluster("16xh100");
  const StepGraph graph = EstimateOrFail(TwoTables(), ByRow(2), cluster).graph;
  Cluster halves = cluster;
  halves.devices = 8;
  halves.devices_per_node = 4;
  EXPECT_DOUBLE_EQ(Find(graph, "embedding_exchange").estimate.total.value,
                   Collective(CollectiveKind::kAllToAll, 8.0 * 1024 * 128 * 4, halves).value);
  Cluster pair = cluster;
  pair.devices = 2;
  EXPECT_DOUBLE_EQ(Find(graph, "replica_sync").estimate.total.value,
                   2 * Collective(CollectiveKind::kAllReduce, 64e6, pair).value);
}

// The mean step is the step without averaging plus a share of it: seconds of one averaging fall out of any two
// intervals.
TEST(CollectiveScopesTest, AStepHasItsShareOfTheAveraging) {
  const Cluster cluster = TestCluster("8xmi350x");
  const auto step = [&](int64_t interval) {
    Recipe recipe = ByRow(2);
    recipe.replica_sync_steps = interval;
    return EstimateOrFail(TwoTables(), recipe, cluster).step.value;
  };
  const double every = step(1), second = step(2), tenth = step(10);
  const double sync = 2 * (every - second);
  EXPECT_GT(sync, 0);
  EXPECT_NEAR(every - tenth, 0.9 * sync, 1e-9 * every);
  Cluster pair = cluster;
  pair.devices = 2;
  // 2 x 256 MB of rows over 4 devices, and as much state; averaging waits at the links' pace in training.
  const double alone = 2 * Collective(CollectiveKind::kAllReduce, 128e6, pair).value;
  EXPECT_GT(sync, alone);
  EXPECT_LT(sync, 2 * alone);
}

// More copies: more memory, and each group's work is that of a cluster of its size.
TEST(CollectiveScopesTest, AGroupWorksLikeAClusterOfItsSize) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  Recipe recipe = DefaultRecipe();
  const StepEstimate whole = EstimateOrFail(model, recipe, TestCluster("8xh100"));
  recipe.replicas = 2;
  recipe.replica_layout = ReplicaLayout::kContiguous;
  const StepEstimate copies = EstimateOrFail(model, recipe, TestCluster("16xh100"));
  EXPECT_EQ(copies.memory.tables, whole.memory.tables);
  const auto embedding = static_cast<size_t>(Category::kEmbeddingForward);
  EXPECT_EQ(copies.busy[embedding], whole.busy[embedding]);
  recipe.replicas = 1;
  EXPECT_LT(EstimateOrFail(model, recipe, TestCluster("16xh100")).memory.tables, whole.memory.tables);
}

TEST(CollectiveScopesTest, NoPlacementIsUnderTheBound) {
  const Cluster cluster = TestCluster("16xmi350x");
  for (const char* id : {"mlperf_dlrm_dcnv2", "rm2"}) {
    Recipe recipe = DefaultRecipe();
    recipe.replicas = 2;
    recipe.replica_sync_steps = 20;
    const Model model = DataModel(id);
    const Seconds bound = ValueOrFail(StepLowerBound(model, recipe, cluster));
    for (const Balance balance : {Balance::kGreedy, Balance::kSearched}) {
      recipe.balance = balance;
      EXPECT_GE(EstimateOrFail(model, recipe, cluster).step, (1 - 1e-9) * bound) << id;
    }
  }
}

TEST(CollectiveScopesTest, Errors) {
  const auto message = [](const Recipe& recipe, const char* cluster) {
    const Result<StepEstimate> estimate = EstimateStep(TwoTables(), recipe, TestCluster(cluster));
    return estimate ? "accepted" : estimate.error().message;
  };
  EXPECT_NE(message(ByRow(3), "8xh100").find("embedding.replicas must divide the 8 devices"), std::string::npos);
  EXPECT_NE(message(ByRow(2), "h100").find("embedding.replicas"), std::string::npos);
  Recipe host = ByRow(2);
  host.host_tables_min = Bytes(1e6);
  EXPECT_EQ(message(host, "8xh100"),
            "recipe 'default': embedding.replicas 2 with tables in host memory: copies of a cache are not averaged; "
            "accepted: replicas 1, or no host tables");
  Recipe columns = ByRow(2);
  columns.tables["a"] = {Sharding::kColumn, 8};
  EXPECT_EQ(
      message(columns, "8xh100"),
      "recipe 'default': embedding.tables.a.shards must be at most the number of devices of a sharding group (4), "
      "got 8");
}

}  // namespace
}  // namespace portolan
