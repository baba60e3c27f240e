#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "engine/cuda_batch.h"
#include "engine/cuda_host_tables.h"
#include "engine/cuda_network.h"
#include "engine/kernel_updates.h"
#include "kernels/cuda_kernels.h"
#include "kernels/gemm/cuda_gemm.h"

// The inside of the CUDA network, shared by cuda_setup.cc (memory, first values), cuda_network.cc (steps),
// cuda_layers.cc and cuda_states.cc.
namespace portolan {

using device::cuda::DeviceMemory;
using kernels::cuda::Bf16;

// One parameter in the flat arrays: rows of `width` numbers, `stride` apart, a stride of a multiple of 8 and a start of
// a multiple of 64, so that every row can be read 16 bytes at a time. What lies between stays zero.
struct ParameterPlace {
  int64_t offset = 0, rows = 0, width = 0, stride = 0;
};
std::vector<ParameterPlace> PlaceParameters(const NetworkPlan& plan, int64_t* count);
// Numbers from one sample to the next in each buffer, and where it starts, with rows of 16 bytes; returns the numbers
// of the whole arena.
int64_t LayOutDeviceArena(const NetworkPlan& plan, std::vector<ArenaBuffer>* buffers);
constexpr int64_t RoundUp(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// T: float or Bf16, what activations are kept in.
template <typename T>
class CudaNetwork : public TrainableNetwork {
 public:
  // `tables`: where they lie.
  CudaNetwork(NetworkPlan plan, kernels::cuda::ProductMath math, const TablePlacement& tables,
              kernels::cuda::CachePolicy policy, uint64_t seed, Repeats repeats);
  StepResult TrainStep(const Batch& batch, const UpdateSettings& settings, float* logits,
                       const std::function<void()>& beside) override;
  double Evaluate(const Batch& batch, float* logits) override;
  const NetworkPlan& plan() const override { return plan_; }
  std::vector<State> States() override;
  void FinishStates(StateUse use) override;
  const std::vector<PhaseTime>& phases() const override { return phases_; }
  bool LooksAhead() const override { return host_tables_ != nullptr; }
  void Expect(const Batch& next) override { expected_ = next.device; }
  HostCacheCounts host_cache() override { return host_tables_ ? host_tables_->Counts() : HostCacheCounts(); }

  // From now on operations are timed one by one, and nothing overlaps; steps are timed as a whole, as they are trained;
  // or nothing is timed.
  enum class Profile { kOff, kOperations, kSteps };
  void SetProfile(Profile profile);
  kernels::cuda::CudaGemm* products() { return &gemm_; }
  kernels::cuda::ProductMath math() const { return math_; }
  // The operations of the steps since then, in order, and the number of steps forgotten.
  std::vector<OperationTime> TakeProfile();

 private:
  template <typename U>
  using Rows = kernels::cuda::Rows<U>;
  static constexpr bool kNarrow = std::is_same_v<T, Bf16>;

  // What one layer sees.
  struct Io {
    size_t layer = 0;
    int64_t rows = 0;
    std::vector<Rows<T>> x, dx;
    Rows<T> y, dy;
    std::vector<Rows<T>> scratch;
    enum class Pass { kTrain, kEvaluate } pass = Pass::kTrain;
  };
  struct LayerState {
    DeviceMemory mask;           // of a ReLU, where the layer above takes its gradient
    int relu_below = -1;         // layer whose ReLU gradient this one's input gradient includes
    bool gradient_done = false;  // by the layer above: dy is that of the product, the bias gradient is there
  };
  struct Timed {
    std::string name;
    double bytes, flops;
    std::unique_ptr<device::cuda::Event> begin, end;
    static Timed Of(const std::string& name, double bytes, double flops) {
      constexpr auto kTimed = device::cuda::Event::Timing::kTimed;
      return {name, bytes, flops, std::make_unique<device::cuda::Event>(kTimed),
              std::make_unique<device::cuda::Event>(kTimed)};
    }
  };

  void Initialise(uint64_t seed);
  void MakeTables(const TablePlacement& placement, kernels::cuda::CachePolicy policy);
  void FuseReluGradients();
  double SecondsOf(const kernels::cuda::CudaProduct& product);
  double ActivationGradientSeconds(const LinearSpec& spec, const Io& io);
  void RefreshCopy();
  const DeviceBatch& Bind(const Batch& batch);
  kernels::cuda::EmbeddingLookups Lookups(const DeviceBatch& batch, const DeviceMemory& features) const;
  Rows<T> At(int value) const;
  Rows<T> GradientAt(int value) const;
  Rows<T> BufferAt(int buffer) const;
  Io MakeIo(size_t layer, int64_t rows, typename Io::Pass pass);
  // places: of the lookups, null where ids are.
  void ForwardRows(const DeviceBatch& batch, const int64_t* places);
  void ForwardLayers(const DeviceBatch& batch, typename Io::Pass pass);
  void BackwardLayer(const DeviceBatch& batch, size_t layer);
  void UpdateDense(const UpdateSettings& settings);
  bool IsHead(size_t layer) const { return layer + 1 == plan_.layers.size(); }

  // cuda_layers.cc
  void Forward(const Io& io);
  void Backward(const Io& io);
  enum class Side { kValue, kGradient };
  int64_t PaddedWidth(int value, int64_t width, Side side) const;
  int64_t PadInput(const Io& io, int64_t width);
  void ForwardLinear(const LinearSpec& spec, const Io& io);
  void BackwardLinear(const LinearSpec& spec, const Io& io);
  void ActivationGradient(const LinearSpec& spec, const Io& io);  // in dy, and the bias gradient
  void ForwardJoin(const JoinSpec& spec, const Io& io);
  void BackwardJoin(const JoinSpec& spec, const Io& io);
  void ForwardCross(const CrossSpec& spec, const Io& io);
  void BackwardCross(const CrossSpec& spec, const Io& io);
  void ForwardNorm(const NormSpec& spec, const Io& io);
  void BackwardNorm(const NormSpec& spec, const Io& io);
  kernels::cuda::CudaProduct ForwardProduct(int64_t rows, int64_t in, int64_t out, Rows<T> x, int64_t weight_stride,
                                            Rows<T> y, kernels::cuda::Epilogue epilogue) const;
  kernels::cuda::CudaProduct InputGradientProduct(int64_t rows, int64_t in, int64_t out, Rows<T> dy,
                                                  int64_t weight_stride, Rows<T> dx, float beta,
                                                  kernels::cuda::Epilogue epilogue) const;
  void Multiply(const char* name, const kernels::cuda::CudaProduct& product, const void* a, const void* b, void* d,
                void* bias = nullptr, void* mask = nullptr);
  void WeightGradient(const char* name, const Io& io, Rows<T> dy, Rows<T> x, int64_t in, int64_t out, int parameter);
  // Parameter p of a layer, counted over all layers.
  int ParameterOf(size_t layer, size_t which) const { return first_parameter_[layer] + static_cast<int>(which); }
  float* Master(int parameter) const { return weights_.As<float>() + places_[parameter].offset; }
  float* Gradient(int parameter) const { return gradients_.As<float>() + places_[parameter].offset; }
  T* Operand(int parameter) const {
    if constexpr (kNarrow) return copy_.As<T>() + places_[parameter].offset;
    return weights_.As<T>() + places_[parameter].offset;
  }
  template <typename F>
  void Do(const std::string& name, double bytes, double flops, const device::cuda::Queue& queue, F&& f);
  template <typename F>
  void Do(const std::string& name, double bytes, double flops, F&& f) {
    Do(name, bytes, flops, main_, std::forward<F>(f));
  }
  device::Stream MainStream() const { return main_.stream(); }

  NetworkPlan plan_;
  const kernels::cuda::ProductMath math_;
  kernels::cuda::CudaGemm gemm_;
  device::cuda::Queue main_, side_;
  device::cuda::Event pooled_, sorted_, gradients_ready_, rows_updated_;

  std::vector<ParameterPlace> places_;
  std::vector<int> first_parameter_;
  int64_t parameter_count_ = 0;
  DeviceMemory weights_, gradients_, state_, copy_;
  std::vector<ArenaBuffer> buffers_;  // as plan_.buffers, with the strides and offsets here
  DeviceMemory arena_, dense_, logits_, dlogits_, partial_, bias_gradient_, control_, eval_control_, sum_partial_;
  std::vector<LayerState> layer_states_;
  int64_t dense_stride_ = 0;

  std::vector<DeviceMemory> rows_, row_states_;  // empty where the table lies in host memory
  std::unique_ptr<CudaHostTables> host_tables_;  // null: all tables lie on the device
  std::shared_ptr<const DeviceBatch> expected_;
  std::vector<kernels::EmbeddingTable> tables_;
  std::vector<int64_t> first_row_;
  int64_t row_count_ = 0;
  int32_t max_dim_ = 0;
  bool plain_rows_ = false;  // EmbeddingLookups::plain_rows
  size_t fork_layer_ = 0;    // when its backward pass is queued, all gradients of pooled rows are
  DeviceMemory device_tables_, device_outputs_, device_gradients_, device_first_row_, sort_space_;

  UploadedBatch uploaded_;
  device::cuda::PinnedMemory host_results_;  // StepControl, then logits
  std::vector<PhaseTime> phases_;
  std::vector<std::unique_ptr<char[]>> mirror_;
  std::vector<Timed> timed_;
  Profile profile_ = Profile::kOff;
};

template <typename T>
template <typename F>
void CudaNetwork<T>::Do(const std::string& name, double bytes, double flops, const device::cuda::Queue& queue, F&& f) {
  if (profile_ != Profile::kOperations) return f();
  timed_.push_back(Timed::Of(name, bytes, flops));
  timed_.back().begin->Record(queue);
  f();
  timed_.back().end->Record(queue);
}

}  // namespace portolan
