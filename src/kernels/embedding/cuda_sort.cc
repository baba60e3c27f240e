#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda_rows.h"
#include "kernels/embedding/cuda_chunks.h"

namespace portolan::kernels::cuda {
namespace {

constexpr int kBagLanes = 8;  // lanes that share a bag

__global__ void __launch_bounds__(256) MakeEntries(EmbeddingLookups bags, int sample_bits, SortSpace space) {
  const int64_t bag = blockIdx.x * int64_t{256 / kBagLanes} + threadIdx.x / kBagLanes;
  if (bag >= bags.feature_count * bags.batch) return;
  const int64_t feature = bag / bags.batch, sample = bag % bags.batch;
  const auto first = static_cast<uint32_t>(bags.first_row[bags.features[feature].table]);
  const auto place = static_cast<uint32_t>((feature << sample_bits) | sample);
  const int64_t end = bags.offsets[bag + 1];
  for (int64_t i = bags.offsets[bag] + threadIdx.x % kBagLanes; i < end; i += kBagLanes) {
    space.rows[0][i] = first + static_cast<uint32_t>(bags.ids[i]);
    space.places[0][i] = bags.weights != nullptr ? static_cast<uint32_t>(i) : place;
    if (bags.weights != nullptr) space.bag_of[i] = place;
  }
}

// Asking takes the host a while, and most batches are as long as the one before.
int64_t SortTemporaryBytes(int64_t lookups) {
  thread_local int64_t asked = -1, answer = 0;
  if (asked == lookups) return answer;
  cub::DoubleBuffer<uint32_t> rows, places;
  size_t bytes = 0;
  device::cuda::CheckCuda(
      cub::DeviceRadixSort::SortPairs(nullptr, bytes, rows, places, static_cast<int>(lookups), 0, 32), "sort");
  asked = lookups;
  answer = static_cast<int64_t>(bytes);
  return answer;
}

}  // namespace

SortSpace LayOutSort(int64_t lookups, int32_t max_dim, void* memory) {
  SortSpace space;
  auto* base = static_cast<char*>(memory);
  const auto take = [&](auto*& pointer, int64_t count) {
    constexpr int64_t kAlignment = 256;
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(base + space.bytes);
    space.bytes += DivideUp(count * static_cast<int64_t>(sizeof(*pointer)), kAlignment) * kAlignment;
  };
  for (int side = 0; side < 2; ++side) {
    take(space.rows[side], lookups);
    take(space.places[side], lookups);
  }
  take(space.bag_of, lookups);
  space.temporary_bytes = SortTemporaryBytes(lookups);
  take(space.temporary, space.temporary_bytes);
  int64_t entries = lookups;
  space.levels = 0;
  do {
    Level& level = space.level[space.levels++];
    level.count = entries;
    level.chunks = DivideUp(entries, space.levels == 1 ? kChunk : kLaterChunk);
    space.square_count += level.chunks;
    if (level.chunks > 1) {
      take(level.next_rows, 2 * level.chunks);
      take(level.next_features, 2 * level.chunks);
      take(level.next_sums, 2 * level.chunks * max_dim);
    }
    entries = 2 * level.chunks;
  } while (space.level[space.levels - 1].chunks > 1);
  take(space.squares, space.square_count);
  double* squares = space.squares;
  for (int l = 0; l < space.levels; ++l) {
    space.level[l].squares = squares;
    squares += space.level[l].chunks;
  }
  return space;
}

int64_t EmbeddingWorkspaceBytes(int64_t lookups, int32_t max_dim) {
  return LayOutSort(lookups > 0 ? lookups : 1, max_dim, nullptr).bytes;
}

int SampleBits(int64_t batch) {
  int bits = 0;
  while ((int64_t{1} << bits) < batch) ++bits;
  return bits;
}

SortedLookups SortByRow(const EmbeddingLookups& lookups, void* workspace, int64_t workspace_bytes,
                        device::Stream stream) {
  SortedLookups sorted;
  sorted.workspace = workspace;
  if (lookups.lookups <= 0) return sorted;
  const SortSpace space = LayOutSort(lookups.lookups, lookups.max_dim, workspace);
  device::cuda::CheckCuda(space.bytes <= workspace_bytes ? cudaSuccess : cudaErrorInvalidValue,
                          "the workspace of the embeddings is too small");
  const int64_t bags = lookups.feature_count * lookups.batch;
  MakeEntries<<<static_cast<unsigned>(DivideUp(bags, 256 / kBagLanes)), 256, 0, Native(stream)>>>(
      lookups, SampleBits(lookups.batch), space);
  CheckLaunch("embedding entries");
  int bits = 1;
  while ((int64_t{1} << bits) < lookups.row_count) ++bits;
  cub::DoubleBuffer<uint32_t> rows(space.rows[0], space.rows[1]), places(space.places[0], space.places[1]);
  auto bytes = static_cast<size_t>(space.temporary_bytes);
  device::cuda::CheckCuda(cub::DeviceRadixSort::SortPairs(space.temporary, bytes, rows, places,
                                                          static_cast<int>(lookups.lookups), 0, bits, Native(stream)),
                          "sorting the lookups");
  sorted.rows = rows.Current();
  sorted.places = places.Current();
  return sorted;
}

}  // namespace portolan::kernels::cuda
