// The functions of portolan_gpu/runtime_api.h and atomics.h that are not templates.
#include "portolan_gpu/runtime_api.h"

#include <cstdio>
#include <cstring>

#include "host_gpu/device_memory.h"
#include "host_gpu/session.h"
#include "portolan_gpu/atomics.h"

namespace {

cudaError_t last_error = cudaSuccess;

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
};

}  // namespace

namespace portolan::gpu {

int SetLastError(int error) {
  if (error != 0) last_error = static_cast<cudaError_t>(error);
  return error;
}

cudaError_t AllocateFor(void** pointer, size_t bytes, MemoryKind kind) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = DeviceMemory::Get().Allocate(bytes, kind);
  if (*pointer == nullptr) last_error = cudaErrorMemoryAllocation;
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

void CopyUnseen(void* to, const volatile void* from, size_t bytes) {
  std::memcpy(to, const_cast<const void*>(from), bytes);
}
void StoreUnseen(volatile void* to, const void* from, size_t bytes) { std::memcpy(const_cast<void*>(to), from, bytes); }

}  // namespace portolan::gpu

using portolan::gpu::DeviceMemory;

const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorName& known : kErrors) {
    if (known.error == error) return known.text;
  }
  return "error";
}
const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorName& known : kErrors) {
    if (known.error == error) return known.name;
  }
  return "cudaError";
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "host");
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "host");
  properties->totalGlobalMem = portolan::gpu::Session::Get().memory_limit();
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = 65536;
  properties->sharedMemPerMultiprocessor = 65536;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = portolan::gpu::Session::Get().wave_size();
  properties->memPitch = 1u << 31;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->clockRate = properties->memoryClockRate = 1000000;
  properties->totalConstMem = 65536;
  properties->major = 8;
  properties->textureAlignment = 512;
  properties->deviceOverlap = properties->canMapHostMemory = properties->concurrentKernels = 1;
  properties->multiProcessorCount = 8;
  properties->asyncEngineCount = 2;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = 4096;
  properties->l2CacheSize = 4 << 20;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 16;
  properties->managedMemory = properties->concurrentManagedAccess = properties->cooperativeLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, device) != cudaSuccess) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *value = p.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxGridDimX:
      *value = p.maxGridSize[0];
      return cudaSuccess;
    case cudaDevAttrMaxBlockDimZ:
      *value = p.maxThreadsDim[2];
      return cudaSuccess;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = p.maxGridSize[1];
      return cudaSuccess;
    case cudaDevAttrTotalConstantMemory:
      *value = static_cast<int>(p.totalConstMem);
      return cudaSuccess;
    case cudaDevAttrAsyncEngineCount:
      *value = p.asyncEngineCount;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      return cudaSuccess;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = p.regsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = p.clockRate;
      return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = p.memoryBusWidth;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
    case cudaDevAttrComputeMode:
    case cudaDevAttrIntegrated:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrManagedMemory:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
      *value = 1;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return last_error = cudaErrorInvalidValue;
  const DeviceMemory& memory = DeviceMemory::Get();
  for (const void* side : {static_cast<const void*>(to), from}) {
    if (!memory.Contains(side)) continue;
    const int buffer = memory.Find(side);
    if (buffer >= 0 && portolan::gpu::AllocationRest(side) >= bytes) continue;
    portolan::gpu::Place place;
    portolan::gpu::Session::Get().Report({"copy-out-of-bounds", -1, -1, place, nullptr,
                                          std::string(file) + ":" + std::to_string(line) + ": copies " +
                                              std::to_string(bytes) + " bytes at " + memory.Describe(side)});
    return last_error = cudaErrorInvalidValue;
  }
  const bool reads_results =
      kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && memory.Contains(from);
  if (reads_results) portolan::gpu::Observe(from, bytes, file, line);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind, const char* file, int line) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = cudaMemcpy(static_cast<char*>(to) + row * to_pitch,
                                         static_cast<const char*>(from) + row * from_pitch, width, kind, file, line);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const DeviceMemory& memory = DeviceMemory::Get();
  if (memory.Contains(to) && portolan::gpu::AllocationRest(to) < bytes) {
    portolan::gpu::Session::Get().Report(
        {"copy-out-of-bounds",
         -1,
         -1,
         {},
         nullptr,
         "cudaMemset of " + std::to_string(bytes) + " bytes at " + memory.Describe(to)});
    return last_error = cudaErrorInvalidValue;
  }
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = cudaMemset(static_cast<char*>(to) + row * pitch, value, width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  return DeviceMemory::Get().Free(pointer) ? cudaSuccess : last_error = cudaErrorInvalidDevicePointer;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = portolan::gpu::Session::Get().memory_limit();
  *free = *total - DeviceMemory::Get().in_use();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  const int found = DeviceMemory::Get().Find(pointer);
  if (found < 0) return cudaSuccess;
  attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
  switch (DeviceMemory::Get().buffer(found).kind) {
    case portolan::gpu::MemoryKind::kDevice:
      attributes->type = cudaMemoryTypeDevice;
      attributes->hostPointer = nullptr;
      break;
    case portolan::gpu::MemoryKind::kManaged:
      attributes->type = cudaMemoryTypeManaged;
      break;
    case portolan::gpu::MemoryKind::kHost:
      attributes->type = cudaMemoryTypeHost;
      break;
  }
  return cudaSuccess;
}
