#include "plan/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "plan/collective_scopes.h"

namespace portolan {
namespace {

// A table as TorchRec splits it: by rows or by columns, shard s on ranks[s].
struct TableSplit {
  const char* type = "table_wise";
  std::vector<int> ranks;
  int64_t row_block = 0;
  int64_t column_block = 0;
};

std::vector<int> AllRanks(const Cluster& cluster) {
  std::vector<int> ranks(static_cast<size_t>(cluster.devices));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TableSplit TorchRecSplit(const Table& table, const TablePlacement& place, const Cluster& cluster) {
  const int64_t rows = static_cast<int64_t>(table.rows);
  TableSplit split{"table_wise", place.ranks, rows, table.dim};
  if (split.ranks.empty()) split.ranks = AllRanks(cluster);
  const auto blocks = [&split](int64_t size) {
    const int64_t count = static_cast<int64_t>(split.ranks.size());
    return (size + count - 1) / count;
  };
  switch (place.sharding) {
    case Sharding::kDataParallel:
      split.type = "data_parallel";
      split.ranks = AllRanks(cluster);
      break;
    case Sharding::kColumn: {
      if (place.column_shards == 1) break;
      split.type = "column_wise";
      // Four values are what an FBGEMM kernel loads at once: every column shard is a multiple of them.
      split.column_block = std::min(table.dim, (blocks(table.dim) + 3) / 4 * 4);
      const int64_t used = (table.dim + split.column_block - 1) / split.column_block;
      split.ranks.resize(static_cast<size_t>(used));
      break;
    }
    case Sharding::kTableRow:
      split.type = "table_row_wise";
      // TorchRec keeps such a table on one node.
      if (static_cast<int>(split.ranks.size()) > cluster.devices_per_node) {
        split.type = "row_wise";
        split.ranks = AllRanks(cluster);
      }
      split.row_block = blocks(rows);
      break;
    case Sharding::kRow:
      split.type = "row_wise";
      split.ranks = AllRanks(cluster);  // TorchRec knows no row split over some of the ranks
      split.row_block = blocks(rows);
      break;
    case Sharding::kTable:
    case Sharding::kAuto:
      if (cluster.devices == 1) split.ranks = {0};
      break;
  }
  return split;
}

// `text` as shell comments of at most 80 columns.
std::string Commented(const std::string& text) {
  constexpr size_t kColumns = 80;
  std::string out, line = "#";
  for (const std::string& word : Split(text, ' ')) {
    if (line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = "#";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

// What a vendor documents, and where. Read in November 2026.
struct Setting {
  const char* line;
  const char* source;
};

constexpr Setting kAmdSettings[] = {
    {"export HIP_FORCE_DEV_KERNARG=1",
     "kernel arguments in device memory, 2 to 3 us a kernel (ROCm documentation, 'Workload optimization')"},
    {"export TORCH_NCCL_HIGH_PRIORITY=1",
     "collectives on high-priority streams (ROCm documentation, 'Workload optimization', Multi-node FSDP and RCCL "
     "settings; AMD-AGI/DLRMBenchmark launch_training_single_node.sh)"},
    {"export GPU_MAX_HW_QUEUES=2",
     "with the line before: two streams for compute, two for RCCL (ROCm documentation, same section)"},
    {"sudo sh -c 'echo 0 > /proc/sys/kernel/numa_balancing'",
     "(ROCm documentation, 'Prerequisite system validation before training')"},
};
constexpr Setting kMi300xChannels = {"export NCCL_MIN_NCHANNELS=112",
                                     "more channels, said of MI300X (ROCm documentation, 'Workload optimization')"};
constexpr Setting kAmdTf32 = {"export HIPBLASLT_ALLOW_TF32=1",
                              "(AMD-AGI/DLRMBenchmark launch_training_single_node.sh, TF32 mode)"};
constexpr Setting kNvidiaStreams = {
    "export CUDA_DEVICE_MAX_CONNECTIONS=3",
    "(NVIDIA's MLPerf v2.1 DLRM submission, config_DGXH100.sh: a multi-stream HugeCTR step)"};

}  // namespace

nlohmann::ordered_json TorchRecPlanJson(const Model& model, const Recipe& recipe, const Placement& placement,
                                        const Cluster& all_devices) {
  const CollectiveScopes scopes(recipe, all_devices);
  const Cluster& cluster = scopes.group();
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  nlohmann::ordered_json widened = nlohmann::ordered_json::array();
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const Table& table = model.tables[t];
    const TablePlacement& place = placement.tables[t];
    const TableSplit split = TorchRecSplit(table, place, cluster);
    if (place.row_shards > 1 && static_cast<int>(split.ranks.size()) != place.row_shards) widened.push_back(table.name);
    nlohmann::ordered_json entry;
    entry["sharding_type"] = split.type;
    entry["compute_kernel"] = place.sharding == Sharding::kDataParallel ? "dense" : "fused";
    entry["ranks"] = split.ranks;
    if (place.sharding != Sharding::kDataParallel) {
      auto& shards = entry["shards"] = nlohmann::ordered_json::array();
      const int64_t rows = static_cast<int64_t>(table.rows);
      const bool by_column = split.column_block < table.dim;
      for (size_t s = 0; s < split.ranks.size(); ++s) {
        const int64_t at = static_cast<int64_t>(s);
        const int64_t row = by_column ? 0 : std::min(rows, at * split.row_block);
        const int64_t column = by_column ? at * split.column_block : 0;
        const int rank = split.ranks[s];
        shards.push_back(
            {{"shard_sizes", {std::min(split.row_block, rows - row), std::min(split.column_block, table.dim - column)}},
             {"shard_offsets", {row, column}},
             {"placement", fmt::format("rank:{}/cuda:{}", rank, rank % cluster.devices_per_node)}});
      }
    }
    parameters[table.name] = std::move(entry);
  }
  nlohmann::ordered_json json;
  json["schema"] = "portolan.torchrec_plan/1";
  json["world_size"] = all_devices.devices;
  json["local_world_size"] = std::min(cluster.devices, cluster.devices_per_node);
  if (recipe.replicas > 1) {
    json["sharding_group_size"] = cluster.devices;
    json["use_inter_host_allreduce"] = recipe.replica_layout == ReplicaLayout::kContiguous;
    json["sync_every_steps"] = recipe.replica_sync_steps;
  }
  json["widened"] = std::move(widened);
  json["plan"] = {{"embedding_collection", std::move(parameters)}};
  return json;
}

std::string LaunchText(const Recipe& recipe, const Cluster& cluster) {
  std::string text = "# launch: one process a device\n";
  const bool amd = cluster.accelerator.vendor == "amd";
  const auto add = [&text](const Setting& setting) {
    text += Commented(setting.source) + fmt::format("{}\n", setting.line);
  };
  if (amd) {
    for (const Setting& setting : kAmdSettings) add(setting);
    if (cluster.accelerator.id == "mi300x") add(kMi300xChannels);
    if (recipe.gemm == DType::kTf32) add(kAmdTf32);
    if (cluster.devices > 1 && cluster.devices < cluster.scale_up.max_devices) {
      text += Commented(
          "avoid collectives over 2 or 4 of the 8 devices of a node: they have only their own links, said of "
          "MI300X (ROCm documentation, 'Workload optimization', Multi-GPU communications)");
    }
  } else if (cluster.accelerator.vendor == "nvidia" && recipe.concurrency == Concurrency::kMultiStream) {
    add(kNvidiaStreams);
  }
  text += fmt::format("torchrun --nnodes={} --nproc_per_node={} train.py\n", cluster.nodes(),
                      std::min(cluster.devices, cluster.devices_per_node));
  return text;
}

}  // namespace portolan
