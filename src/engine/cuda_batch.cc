#include "engine/cuda_batch.h"

namespace portolan {
namespace {

using device::cuda::DeviceMemory;

// Grows with room to spare, so that batches of changing lengths do not allocate each time.
template <typename T>
T* Room(DeviceMemory* memory, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  if (memory->bytes() < bytes) {
    *memory = DeviceMemory();
    *memory = DeviceMemory(bytes + bytes / 8, "a batch");
  }
  return count > 0 ? memory->As<T>() : nullptr;
}

template <typename T>
const T* Copied(const std::vector<T>& values, DeviceMemory* memory, const device::cuda::Queue& queue) {
  T* to = Room<T>(memory, static_cast<int64_t>(values.size()));
  device::cuda::CopyToDevice(queue, values.data(), static_cast<int64_t>(values.size() * sizeof(T)), to);
  return to;
}

}  // namespace

void UploadedBatch::Upload(const Batch& batch, const device::cuda::Queue& queue) {
  size = batch.size;
  lookups = static_cast<int64_t>(batch.ids.size());
  dense = Copied(batch.dense, &memory_[0], queue);
  labels = Copied(batch.labels, &memory_[1], queue);
  ids = Copied(batch.ids, &memory_[2], queue);
  offsets = Copied(batch.offsets, &memory_[3], queue);
  id_weights = Copied(batch.id_weights, &memory_[4], queue);
  sample_weights = Copied(batch.sample_weights, &memory_[5], queue);
  queue.Wait();
}

UploadedBatch::Arrays UploadedBatch::Reserve(int64_t batch_size, int64_t dense_width, int64_t lookup_count,
                                             int64_t feature_count) {
  const Arrays arrays = {Room<float>(&memory_[0], batch_size * dense_width), Room<float>(&memory_[1], batch_size),
                         Room<int64_t>(&memory_[2], lookup_count),
                         Room<int64_t>(&memory_[3], feature_count * batch_size + 1)};
  size = batch_size;
  lookups = lookup_count;
  dense = arrays.dense;
  labels = arrays.labels;
  ids = arrays.ids;
  offsets = arrays.offsets;
  id_weights = sample_weights = nullptr;
  return arrays;
}

}  // namespace portolan
