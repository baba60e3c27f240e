#include "device/cuda/cuda_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

namespace portolan::device::cuda {
namespace {

// Machine code for 9.0 runs on every 9.x.
constexpr int kCompiledMajor = PORTOLAN_CUDA_CAPABILITY / 10, kCompiledMinor = PORTOLAN_CUDA_CAPABILITY % 10;

std::string Gigabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

}  // namespace

void CheckRuntime(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::string message = std::string("the GPU failed during ") + what + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) {
    message += "; a smaller batch, 16-bit rows or rowwise_adagrad need less memory";
  } else {
    message += "; nothing after the last checkpoint is kept";
  }
  throw DeviceFailure(message);
}

Result<DeviceFacts> OpenDevice() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorInsufficientDriver || found == cudaErrorNoDevice || (found == cudaSuccess && count == 0)) {
    return MakeError(
        ErrorCode::kUnsupported,
        "device cuda: no NVIDIA GPU with a driver for CUDA 13 or newer is here; accepted on this machine: cpu");
  }
  if (found != cudaSuccess) {
    return MakeError(ErrorCode::kIo, std::string("device cuda: the driver says: ") + cudaGetErrorString(found));
  }
  cudaDeviceProp properties = {};
  DeviceFacts facts;
  int driver = 0;
  cudaError_t error = cudaSetDevice(0);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, 0);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&driver);
  size_t free_bytes = 0, total_bytes = 0;
  if (error == cudaSuccess && properties.major == kCompiledMajor) error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (error != cudaSuccess) {
    return MakeError(ErrorCode::kIo, std::string("device cuda: the driver says: ") + cudaGetErrorString(error));
  }
  facts.name = properties.name;
  if (properties.major != kCompiledMajor || properties.minor < kCompiledMinor) {
    return MakeError(ErrorCode::kUnsupported,
                     "device cuda: " + facts.name + " has compute capability " + std::to_string(properties.major) +
                         "." + std::to_string(properties.minor) + ", this binary holds code for " +
                         std::to_string(kCompiledMajor) + "." + std::to_string(kCompiledMinor) +
                         " and later of the same major version; configure with -DPORTOLAN_CUDA_ARCHITECTURE=sm_" +
                         std::to_string(properties.major) + std::to_string(properties.minor));
  }
  facts.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  facts.total_bytes = static_cast<int64_t>(total_bytes);
  facts.free_bytes = static_cast<int64_t>(free_bytes);
  facts.l2_bytes = properties.l2CacheSize;
  facts.multiprocessors = properties.multiProcessorCount;
  return facts;
}

DeviceMemory::DeviceMemory(int64_t bytes, const char* purpose) : bytes_(bytes) {
  if (bytes <= 0) return;
  const cudaError_t error = cudaMalloc(&data_, static_cast<size_t>(bytes));
  if (error == cudaSuccess) return;
  data_ = nullptr;
  if (error != cudaErrorMemoryAllocation) CheckRuntime(error, purpose);
  static_cast<void>(cudaGetLastError());  // an allocation that failed leaves the device usable
  size_t free_bytes = 0, total_bytes = 0;
  static_cast<void>(cudaMemGetInfo(&free_bytes, &total_bytes));
  throw DeviceFailure(std::string("the GPU has no memory for ") + purpose + ": " + Gigabytes(bytes) + " are needed, " +
                      Gigabytes(static_cast<int64_t>(free_bytes)) + " of " +
                      Gigabytes(static_cast<int64_t>(total_bytes)) +
                      " are free; a smaller batch, 16-bit rows or rowwise_adagrad need less");
}
DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) static_cast<void>(cudaFree(data_));
}

PinnedMemory::PinnedMemory(int64_t bytes, const char* purpose) : bytes_(bytes) {
  if (bytes > 0) CheckRuntime(cudaMallocHost(&data_, static_cast<size_t>(bytes)), purpose);
}
PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) static_cast<void>(cudaFreeHost(data_));
}

MappedHostMemory::MappedHostMemory(int64_t bytes, const char* purpose) {
  constexpr int64_t kHuge = int64_t{2} << 20, kPage = 4096;
  const int64_t whole = (bytes + kHuge - 1) / kHuge * kHuge;
  void* data = mmap(nullptr, static_cast<size_t>(whole), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw DeviceFailure(std::string("the system has no memory for ") + purpose + ": " + Gigabytes(bytes) +
                        " are needed");
  }
  data_ = data;
  bytes_ = whole;
  static_cast<void>(madvise(data, static_cast<size_t>(whole), MADV_HUGEPAGE));
  // Pages are made as they are touched, which takes one core most of a second a gigabyte.
  const int64_t workers = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  std::vector<std::thread> threads;
  for (int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([=] {
      auto* const first = static_cast<volatile char*>(data);
      for (int64_t page = whole / kPage * w / workers; page < whole / kPage * (w + 1) / workers; ++page) {
        first[page * kPage] = 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CheckRuntime(cudaHostRegister(data, static_cast<size_t>(whole), cudaHostRegisterMapped | cudaHostRegisterPortable),
               purpose);
  CheckRuntime(cudaHostGetDevicePointer(&device_, data, 0), purpose);
}
MappedHostMemory::~MappedHostMemory() {
  if (data_ == nullptr) return;
  if (device_ != nullptr) static_cast<void>(cudaHostUnregister(data_));
  static_cast<void>(munmap(data_, static_cast<size_t>(bytes_)));
}

Queue::Queue() { CheckRuntime(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
Queue::~Queue() {
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
}
void Queue::Wait() const { CheckRuntime(cudaStreamSynchronize(stream_), "a step"); }

Event::Event(Timing timing) {
  CheckRuntime(cudaEventCreateWithFlags(&event_, timing == Timing::kTimed ? cudaEventDefault : cudaEventDisableTiming),
               "making an event");
}
Event::~Event() {
  if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
}
void Event::Record(const Queue& queue) { CheckRuntime(cudaEventRecord(event_, queue.native()), "recording an event"); }
void Event::HoldBack(const Queue& queue) const {
  CheckRuntime(cudaStreamWaitEvent(queue.native(), event_, 0), "waiting for an event");
}
void Event::Wait() const { CheckRuntime(cudaEventSynchronize(event_), "a step"); }
double Event::MillisecondsSince(const Event& begin) const {
  float milliseconds = 0;
  CheckRuntime(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "reading an event");
  return milliseconds;
}

void CopyToDevice(const Queue& queue, const void* from, int64_t bytes, void* to) {
  if (bytes <= 0) return;
  CheckRuntime(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, queue.native()),
               "a copy to the device");
}
void CopyToHost(const Queue& queue, const void* from, int64_t bytes, void* to) {
  if (bytes <= 0) return;
  CheckRuntime(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, queue.native()),
               "a copy to the host");
}
void FillZero(const Queue& queue, void* data, int64_t bytes) {
  if (bytes > 0) CheckRuntime(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), queue.native()), "clearing memory");
}

}  // namespace portolan::device::cuda
