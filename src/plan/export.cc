#include "plan/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

const char* TorchRecSharding(const TablePlacement& place) {
  switch (place.sharding) {
    case Sharding::kDataParallel:
      return "data_parallel";
    case Sharding::kColumn:
      return "column_wise";
    case Sharding::kRow:
      return "row_wise";
    case Sharding::kTableRow:
      return "table_row_wise";
    case Sharding::kTable:
    case Sharding::kAuto:
      return "table_wise";
  }
  return "table_wise";
}

struct Setting {
  const char* line;
  const char* source;
};

constexpr Setting kAmdSettings[] = {
    {"export HIP_FORCE_DEV_KERNARG=1", "ROCm documentation, workload optimization: kernel arguments in device memory"},
    {"export GPU_MAX_HW_QUEUES=2",
     "ROCm documentation, workload optimization: fewer hardware queues for training streams"},
    {"export TORCH_NCCL_HIGH_PRIORITY=1", "AMD-AGI/DLRMBenchmark launch script"},
    {"export NCCL_MIN_NCHANNELS=112", "ROCm documentation, workload optimization: RCCL end-to-end use"},
    {"sudo sh -c 'echo 0 > /proc/sys/kernel/numa_balancing'", "ROCm documentation, workload optimization"},
};
constexpr Setting kNvidiaSettings[] = {
    {"export CUDA_DEVICE_MAX_CONNECTIONS=3", "NVIDIA MLPerf v2.1 DLRM submission; lets collectives overlap kernels"},
    {"export NCCL_NVLS_ENABLE=1", "NVIDIA MLPerf v5.0 DLRM-DCNv2 config_common.sh: reductions in the NVSwitch"},
};

}  // namespace

nlohmann::ordered_json TorchRecPlanJson(const Model& model, const Placement& placement, const Cluster& cluster) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const Table& table = model.tables[t];
    const TablePlacement& place = placement.tables[t];
    std::vector<int> ranks = place.ranks;
    if (ranks.empty()) {
      for (int rank = 0; rank < cluster.devices; ++rank) ranks.push_back(rank);
    }
    nlohmann::ordered_json entry;
    entry["sharding_type"] = TorchRecSharding(place);
    entry["compute_kernel"] = place.sharding == Sharding::kDataParallel ? "dense" : "fused";
    entry["ranks"] = ranks;
    auto& shards = entry["sharding_spec"] = nlohmann::ordered_json::array();
    const int64_t rows = static_cast<int64_t>(table.rows);
    const int64_t count = static_cast<int64_t>(ranks.size());
    const bool copies = place.sharding == Sharding::kDataParallel;
    const bool by_column = place.column_shards > 1;
    const int64_t row_block = copies || by_column ? rows : (rows + count - 1) / count;
    const int64_t column_block = by_column ? (table.dim + count - 1) / count : table.dim;
    for (int64_t s = 0; !copies && s < count; ++s) {
      const int64_t row = by_column ? 0 : std::min(rows, s * row_block);
      const int64_t column = by_column ? std::min(table.dim, s * column_block) : 0;
      const int rank = ranks[static_cast<size_t>(s)];
      shards.push_back({{"shard_offsets", {row, column}},
                        {"shard_sizes", {std::min(row_block, rows - row), std::min(column_block, table.dim - column)}},
                        {"placement", fmt::format("rank:{}/cuda:{}", rank, rank % cluster.devices_per_node)}});
    }
    parameters[table.name] = std::move(entry);
  }
  nlohmann::ordered_json json;
  json["schema"] = "portolan.torchrec_plan/1";
  json["world_size"] = cluster.devices;
  json["plan"] = {{"embedding_collection", std::move(parameters)}};
  return json;
}

std::string LaunchText(const Recipe& recipe, const Cluster& cluster) {
  std::string text = "# launch: one process a device\n";
  const bool amd = cluster.accelerator.vendor == "amd";
  const auto add = [&text](const Setting& setting) { text += fmt::format("{}  # {}\n", setting.line, setting.source); };
  if (amd) {
    for (const Setting& setting : kAmdSettings) add(setting);
    if (recipe.gemm == DType::kTf32) {
      add({"export HIPBLASLT_ALLOW_TF32=1", "AMD-AGI/DLRMBenchmark launch script"});
    }
    if (cluster.devices > 1 && cluster.devices < cluster.scale_up.max_devices) {
      text +=
          "# Groups of fewer than all 8 devices of the mesh have only their own links (ROCm documentation: avoid 2 or "
          "4).\n";
    }
  } else if (cluster.accelerator.vendor == "nvidia") {
    if (recipe.concurrency == Concurrency::kMultiStream) add(kNvidiaSettings[0]);
    if (cluster.scale_up.in_network_reduction) add(kNvidiaSettings[1]);
  }
  text += fmt::format("torchrun --nnodes={} --nproc_per_node={} train.py\n", cluster.nodes(),
                      std::min(cluster.devices, cluster.devices_per_node));
  return text;
}

}  // namespace portolan
