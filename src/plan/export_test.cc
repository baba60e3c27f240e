#include "plan/export.h"

#include <set>

#include "base/text.h"
#include "plan/test_inputs.h"

namespace portolan {
namespace {

struct Exported {
  nlohmann::ordered_json json;
  const nlohmann::ordered_json& Table(const std::string& name) const {
    return json.at("plan").at("embedding_collection").at(name);
  }
};

Exported Export(const Model& model, const Recipe& recipe, const std::string& cluster) {
  const Cluster on = TestCluster(cluster);
  return {TorchRecPlanJson(model, recipe, EstimateOrFail(model, recipe, on).placement, on)};
}

// Every table exactly once: shards are disjoint, cover all rows and columns, stand on ranks that exist, one a rank; a
// replicated table has no shards, as TorchRec has it.
void CheckCoverage(const Exported& exported, const Model& model, int devices, int per_node = 8) {
  ASSERT_EQ(exported.json.at("plan").at("embedding_collection").size(), model.tables.size());
  for (const Table& table : model.tables) {
    SCOPED_TRACE(table.name);
    const auto& entry = exported.Table(table.name);
    const std::vector<int> ranks = entry.at("ranks");
    EXPECT_EQ(std::set<int>(ranks.begin(), ranks.end()).size(), ranks.size());
    for (const int rank : ranks) {
      EXPECT_GE(rank, 0);
      EXPECT_LT(rank, devices);
    }
    const std::string type = entry.at("sharding_type");
    EXPECT_EQ(entry.at("compute_kernel"), type == "data_parallel" ? "dense" : "fused");
    if (type == "data_parallel") {
      EXPECT_EQ(ranks.size(), static_cast<size_t>(devices));
      EXPECT_FALSE(entry.contains("shards"));
      continue;
    }
    ASSERT_EQ(entry.at("shards").size(), ranks.size());
    if (type == "row_wise") {
      EXPECT_EQ(ranks.size(), static_cast<size_t>(devices));
    }
    if (type == "table_wise") {
      EXPECT_EQ(ranks.size(), 1u);
    }
    int64_t row = 0, column = 0, area = 0;
    for (size_t s = 0; s < ranks.size(); ++s) {
      const auto& shard = entry.at("shards")[s];
      const std::vector<int64_t> sizes = shard.at("shard_sizes"), offsets = shard.at("shard_offsets");
      EXPECT_EQ(offsets[0], row);
      EXPECT_EQ(offsets[1], column);
      EXPECT_GE(sizes[0], 0);
      EXPECT_GT(sizes[1], 0);
      area += sizes[0] * sizes[1];
      if (type == "column_wise") {
        column += sizes[1];
        if (s + 1 < ranks.size()) {
          EXPECT_EQ(sizes[1] % 4, 0);
        }
      } else {
        row += sizes[0];
      }
      EXPECT_EQ(shard.at("placement"),
                "rank:" + std::to_string(ranks[s]) + "/cuda:" + std::to_string(ranks[s] % per_node));
    }
    EXPECT_EQ(area, static_cast<int64_t>(table.rows) * table.dim);
  }
}

TEST(ExportTest, EveryTableOnce) {
  for (const char* id : {"mlperf_dlrm_dcnv2", "production_66", "onetrans_large"}) {
    const Model model = DataModel(id);
    for (const Sharding sharding : {Sharding::kAuto, Sharding::kTable, Sharding::kColumn, Sharding::kRow,
                                    Sharding::kTableRow, Sharding::kDataParallel}) {
      for (const int devices : {1, 8, 16, 32}) {
        SCOPED_TRACE(std::string(id) + " " + ShardingName(sharding) + " on " + std::to_string(devices));
        Recipe recipe = DefaultRecipe();
        recipe.sharding = sharding;
        CheckCoverage(Export(model, recipe, std::to_string(devices) + "xmi350x"), model, devices);
      }
    }
  }
}

// 10 rows over 8 ranks as TorchRec deals them: blocks of ceil(10 / 8) = 2, the last ranks empty.
TEST(ExportTest, FewRows) {
  const Model model = ModelFromText(
      "model: m\ndense_features: 8\ntables:\n  - {name: t, rows: 10, dim: 12, lookups: 1}\nblocks:\n"
      "  - {name: a, type: mlp, input: dense, widths: [64]}\n");
  Recipe recipe = DefaultRecipe();
  recipe.sharding = Sharding::kRow;
  const Exported rows = Export(model, recipe, "8xh100");
  std::vector<int64_t> sizes;
  for (const auto& shard : rows.Table("t").at("shards")) sizes.push_back(shard.at("shard_sizes")[0]);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 2, 2, 2, 0, 0, 0}));
  // 12 columns over 8 ranks: three shards of four, the least an FBGEMM kernel takes.
  recipe.sharding = Sharding::kColumn;
  EXPECT_EQ(Export(model, recipe, "8xh100").Table("t").at("ranks").size(), 3u);
}

// A split over some of the ranks, which TorchRec does not have, becomes one over all and is listed.
TEST(ExportTest, PartialRowSplitsAreWidened) {
  const Model model = DataModel("rm2");
  Placement placement = EstimateOrFail(model, DefaultRecipe(), TestCluster("8xh100")).placement;
  placement.tables[3] = {Sharding::kRow, 2, 1, {5, 6}};
  const Exported exported{TorchRecPlanJson(model, DefaultRecipe(), placement, TestCluster("8xh100"))};
  EXPECT_EQ(exported.json.at("widened"), nlohmann::ordered_json::array({model.tables[3].name}));
  EXPECT_EQ(exported.Table(model.tables[3].name).at("ranks").size(), 8u);
  EXPECT_EQ(exported.json.at("world_size"), 8);
}

TEST(ExportTest, LaunchText) {
  Recipe recipe = DefaultRecipe();
  const std::string amd = LaunchText(recipe, TestCluster("16xmi350x"));
  EXPECT_NE(amd.find("torchrun --nnodes=2 --nproc_per_node=8 train.py"), std::string::npos);
  EXPECT_NE(amd.find("export GPU_MAX_HW_QUEUES=2"), std::string::npos);
  EXPECT_EQ(amd.find("NCCL_MIN_NCHANNELS"), std::string::npos) << "said of MI300X only";
  EXPECT_EQ(amd.find("TF32"), std::string::npos);
  EXPECT_NE(LaunchText(recipe, TestCluster("8xmi300x")).find("NCCL_MIN_NCHANNELS=112"), std::string::npos);
  EXPECT_NE(LaunchText(recipe, TestCluster("4xmi350x")).find("avoid collectives over 2 or 4"), std::string::npos);
  recipe.gemm = DType::kTf32;
  EXPECT_NE(LaunchText(recipe, TestCluster("8xmi350x")).find("HIPBLASLT_ALLOW_TF32=1"), std::string::npos);
  EXPECT_EQ(LaunchText(DefaultRecipe(), TestCluster("8xb200")),
            "# launch: one process a device\ntorchrun --nnodes=1 --nproc_per_node=8 train.py\n");
  // Every setting stands below comments that name its source, and no line is wider than a screen.
  std::string comments;
  for (const std::string& line : Split(amd, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
    if (line.rfind("export", 0) == 0) {
      EXPECT_NE(comments.find("ROCm documentation"), std::string::npos) << line;
    }
    comments = line.rfind("# ", 0) == 0 ? comments + line.substr(1) : "";
  }
}

// 2D: the plan of one group, whose ranks DMPCollection maps to the others'.
TEST(ExportTest, ReplicasArePlannedForOneGroup) {
  const Model model = DataModel("mlperf_dlrm_dcnv2");
  Recipe recipe = DefaultRecipe();
  EXPECT_FALSE(Export(model, recipe, "16xh100").json.contains("sharding_group_size"));
  recipe.replicas = 2;
  recipe.replica_sync_steps = 7;
  const Exported exported = Export(model, recipe, "16xh100");
  CheckCoverage(exported, model, 8, 4);
  EXPECT_EQ(exported.json.at("world_size"), 16);
  EXPECT_EQ(exported.json.at("local_world_size"), 4) << "four neighbours' places of a node";
  EXPECT_EQ(exported.json.at("sharding_group_size"), 8);
  EXPECT_EQ(exported.json.at("use_inter_host_allreduce"), false);
  EXPECT_EQ(exported.json.at("sync_every_steps"), 7);
  recipe.replica_layout = ReplicaLayout::kContiguous;
  EXPECT_EQ(Export(model, recipe, "16xh100").json.at("use_inter_host_allreduce"), true);
}

}  // namespace
}  // namespace portolan
