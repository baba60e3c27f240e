#pragma once

#include <memory>

#include "device/cuda/cuda_device.h"
#include "engine/batch.h"

namespace portolan {

// A batch in device memory that it owns and uses again.
class UploadedBatch : public DeviceBatch {
 public:
  // Copies a batch of host memory; waits until it is there.
  void Upload(const Batch& batch, const device::cuda::Queue& queue);
  // Memory for a batch that a kernel writes.
  struct Arrays {
    float* dense = nullptr;
    float* labels = nullptr;
    int64_t* ids = nullptr;
    int64_t* offsets = nullptr;
  };
  Arrays Reserve(int64_t batch_size, int64_t dense_width, int64_t lookup_count, int64_t feature_count);

 private:
  device::cuda::DeviceMemory memory_[6];
};

}  // namespace portolan
