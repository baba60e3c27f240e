#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/network.h"

// The engine on one NVIDIA GPU. In a binary built without PORTOLAN_CUDA every function here says so (no_cuda.cc).
namespace portolan {

// Of a recipe what a GPU computes: bf16 products keep activations, gradients of activations and biases in bf16 and
// parameters in fp32; tf32 and fp32 keep everything in fp32. Errors name the field and what is accepted.
enum class CudaMath { kFp32, kTf32, kBf16 };
struct CudaOptions {
  NetworkOptions network;
  CudaMath math = CudaMath::kFp32;
  // Device memory that a network may take; tables that find no room in it lie in host memory behind a cache. 0: tables
  // lie on the device.
  double device_bytes = 0;
  HostCachePolicy cache_policy = HostCachePolicy::kLfu;
};
Result<CudaOptions> CudaOptionsFromRecipe(const Model& model, const Recipe& recipe, std::vector<std::string>* notes);

struct CudaMemory {
  double free_bytes = 0;
  std::string device;  // name and driver
};
// Errors: no GPU, no driver, another architecture than this binary holds code for.
Result<CudaMemory> CudaMemoryAvailable();
// Device memory that the network will take, by part, as NetworkPlan::MemoryParts.
std::vector<std::pair<std::string, double>> CudaMemoryParts(const NetworkPlan& plan, const CudaOptions& options);
// Host memory of its tables that do not lie on the device.
double CudaHostBytes(const NetworkPlan& plan, const CudaOptions& options);

// Time of each operation of a step, for --profile.
struct OperationTime {
  std::string name;
  double seconds = 0;
  double bytes = 0, flops = 0;  // that it cannot do without
};

// A network on the GPU. It computes what Network computes. Sums have an order of their own, which the shapes and the
// kernels of the products decide; the latter are timed when the network is made, so that two runs may differ in the
// last bits. With kBitEqual they are the library's first choices, and a run repeats bit by bit on one type of GPU and
// library. Batches without DeviceBatch are copied first. A device that fails ends a call with
// device::cuda::DeviceFailure; Train turns it into an Error.
Result<std::unique_ptr<TrainableNetwork>> MakeCudaNetwork(NetworkPlan plan, const CudaOptions& options, uint64_t seed,
                                                          Repeats repeats);

// The readers of a job with their batches in device memory: synthetic data is drawn there, repeated batches are kept
// there, and everything else is copied by the thread that reads ahead.
std::unique_ptr<Reader> MakeCudaReader(std::unique_ptr<Reader> reader, const BatchSchema& schema);

struct StepProfile {
  std::vector<OperationTime> operations;  // one by one, nothing overlapped
  // What the device reaches: a copy of a gigabyte (read and written), and a product of 8,192^3 in the network's own
  // math.
  double copy_bytes_per_s = 0, product_flops_per_s = 0;
  // Products of the step: the kernels taken, and the fastest of up to 64 of the library's list for each.
  double products_taken_s = 0, products_best_s = 0;
  int products = 0, product_kernels = 0;
  double step_seconds = 0;  // on the device from the first operation to the last, overlapped as trained
};
// Both averaged over `steps` steps of the reader's data, which train the network on.
Result<StepProfile> ProfileCudaStep(TrainableNetwork* network, Reader* reader, const UpdateSettings& settings,
                                    int steps);

// What went wrong if `error` is a DeviceFailure, else empty.
std::string DeviceFailureText(const std::exception& error);

}  // namespace portolan
