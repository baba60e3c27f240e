#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/stream.h"

// Memory, streams and events of one NVIDIA GPU for host code. Compiled only with PORTOLAN_CUDA.
namespace portolan::device::cuda {

// What the GPU refused or lost while work was under way, in one line. Thrown, because it can come out of any call; the
// training loop turns it into an Error, as it does with std::bad_alloc.
class DeviceFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws DeviceFailure where `error` is not success. `what`: what was being done.
void CheckRuntime(cudaError_t error, const char* what);

struct DeviceFacts {
  std::string name, driver;
  int64_t total_bytes = 0, free_bytes = 0, l2_bytes = 0;
  int multiprocessors = 0;
};
// Makes device 0 the current one. Errors: no driver, no device, an architecture that this binary holds no code for.
Result<DeviceFacts> OpenDevice();

// Device memory that is freed with its owner. Not zeroed.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws DeviceFailure with what was asked for and what is free.
  DeviceMemory(int64_t bytes, const char* purpose);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Host memory that copies reach without a detour.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(int64_t bytes, const char* purpose);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Host memory of many gigabytes, zeroed, that kernels read and write over the link. Its pages are touched by all cores.
class MappedHostMemory {
 public:
  MappedHostMemory(int64_t bytes, const char* purpose);
  ~MappedHostMemory();
  MappedHostMemory(MappedHostMemory&& other) noexcept { *this = std::move(other); }
  MappedHostMemory& operator=(MappedHostMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(device_, other.device_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  // As the host and as the device reach it.
  template <typename T>
  T* Host() const {
    return static_cast<T*>(data_);
  }
  template <typename T>
  T* Device() const {
    return static_cast<T*>(device_);
  }

 private:
  void* data_ = nullptr;
  void* device_ = nullptr;
  int64_t bytes_ = 0;
};

// A queue of work.
class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  cudaStream_t native() const { return stream_; }
  Stream stream() const { return {stream_}; }
  void Wait() const;  // until all of it is done

 private:
  cudaStream_t stream_ = nullptr;
};

// A place in a queue.
class Event {
 public:
  enum class Timing { kNone, kTimed };
  explicit Event(Timing timing = Timing::kNone);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void Record(const Queue& queue);
  // Work queued on `queue` from now on waits for the event.
  void HoldBack(const Queue& queue) const;
  void Wait() const;
  // Milliseconds from `begin` to this; both timed and done.
  double MillisecondsSince(const Event& begin) const;

 private:
  cudaEvent_t event_ = nullptr;
};

// Copies on the queue; they return at once where the host memory is pinned.
void CopyToDevice(const Queue& queue, const void* from, int64_t bytes, void* to);
void CopyToHost(const Queue& queue, const void* from, int64_t bytes, void* to);
void FillZero(const Queue& queue, void* data, int64_t bytes);

// A copy of the values in device memory.
template <typename T>
DeviceMemory UploadedArray(const std::vector<T>& values, const char* purpose) {
  DeviceMemory memory(static_cast<int64_t>(values.size() * sizeof(T)), purpose);
  if (values.empty()) return memory;
  CheckRuntime(cudaMemcpy(memory.As<void>(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
               "a copy to the device");
  return memory;
}

}  // namespace portolan::device::cuda
