#include <algorithm>
#include <numeric>

#include "engine/network.h"

// Where a planned network's tensors lie, and how much memory they and the rest of it take.
namespace portolan {

int64_t LayOutArena(const std::vector<int64_t>& sizes, std::vector<ArenaBuffer>* buffers) {
  constexpr int64_t kAlignFloats = 16;  // 64 bytes
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<size_t> placed;
  int64_t total = 0;
  for (const size_t b : order) {
    ArenaBuffer& buffer = (*buffers)[b];
    std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end) of what is alive at the same time
    for (const size_t other : placed) {
      const ArenaBuffer& neighbour = (*buffers)[other];
      if (neighbour.first > buffer.last || neighbour.last < buffer.first) continue;
      taken.emplace_back(neighbour.offset, neighbour.offset + sizes[other]);
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + sizes[b] <= begin) break;
      offset = std::max(offset, (end + kAlignFloats - 1) / kAlignFloats * kAlignFloats);
    }
    buffer.offset = offset;
    total = std::max(total, offset + sizes[b]);
    placed.push_back(b);
  }
  return total;
}

std::vector<std::pair<std::string, double>> NetworkPlan::MemoryParts() const {
  double rows = 0, state = 0;
  for (const Table& table : tables) {
    rows += table.rows * static_cast<double>(kernels::RowBytes(options.row, table.dim));
    state += table.rows * 4.0 * static_cast<double>(kernels::RowStateFloats(options.row_optimizer, table.dim));
  }
  const double dense = static_cast<double>(dense_parameters) *
                       (8.0 + 4.0 * static_cast<double>(kernels::DenseStateFloats(options.dense_optimizer)));
  constexpr double kSortBytesPerLookup = 40;  // EmbeddingBackwardWorkspaceBytes
  constexpr double kBatchesHeld = 3;          // one in use, two read ahead
  const double batch = static_cast<double>(options.batch);
  const double held =
      kBatchesHeld * batch *
      (static_cast<double>(dense_width) * 4 + lookups * 8 + static_cast<double>(features.size()) * 8 + 4);
  return {{"embedding rows", rows},
          {"embedding optimizer state", state},
          {"dense parameters, gradients, state", dense},
          {"activations and gradients", 4.0 * static_cast<double>(arena_floats)},
          {"batches and sort", held + batch * lookups * kSortBytesPerLookup + 2e6}};
}

double NetworkPlan::MemoryBytes() const {
  double sum = 0;
  for (const auto& [name, bytes] : MemoryParts()) sum += bytes;
  return sum;
}

BatchSchema NetworkPlan::Schema(const Model& model) const {
  BatchSchema schema;
  schema.dense_width = dense_width;
  for (const Feature& feature : model.features) {
    schema.features.push_back(
        {feature.name, static_cast<int64_t>(model.tables[feature.table].rows), feature.lookups, feature.zipf_exponent});
  }
  return schema;
}

}  // namespace portolan
