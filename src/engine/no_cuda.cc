#include "engine/cuda_measure.h"
#include "engine/cuda_network.h"

// In place of cuda_*.cc in a binary without CUDA.
namespace portolan {
namespace {

tl::unexpected<Error> NotBuilt() {
  return MakeError(ErrorCode::kUnsupported,
                   "device cuda: this binary is built without CUDA; configure with -DPORTOLAN_CUDA=ON (docs/train.md)");
}

}  // namespace

Result<CudaOptions> CudaOptionsFromRecipe(const Model& /*model*/, const Recipe& /*recipe*/,
                                          std::vector<std::string>* /*notes*/) {
  return NotBuilt();
}
Result<CudaMemory> CudaMemoryAvailable() { return NotBuilt(); }
std::vector<std::pair<std::string, double>> CudaMemoryParts(const NetworkPlan& /*plan*/,
                                                            const CudaOptions& /*options*/) {
  return {};
}
double CudaHostBytes(const NetworkPlan& /*plan*/, const CudaOptions& /*options*/) { return 0; }
// NOLINTNEXTLINE(performance-unnecessary-value-param): cuda_backend.cc keeps the plan
Result<std::unique_ptr<TrainableNetwork>> MakeCudaNetwork(NetworkPlan /*plan*/, const CudaOptions& /*options*/,
                                                          uint64_t /*seed*/, Repeats /*repeats*/) {
  return NotBuilt();
}
std::unique_ptr<Reader> MakeCudaReader(std::unique_ptr<Reader> reader, const BatchSchema& /*schema*/) { return reader; }
Result<StepProfile> ProfileCudaStep(TrainableNetwork* /*network*/, Reader* /*reader*/,
                                    const UpdateSettings& /*settings*/, int /*steps*/) {
  return NotBuilt();
}
Result<CudaKernelTimes> MeasureCudaKernels(
    const std::function<void(const std::string& part, double done)>& /*progress*/) {
  return NotBuilt();
}
std::string DeviceFailureText(const std::exception& /*error*/) { return {}; }

}  // namespace portolan
