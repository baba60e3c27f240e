#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/cuda_network_state.h"
#include "kernels/number_formats.h"

// The CUDA network before its first step: memory, tables, initial values, and which products take a ReLU's gradient.
namespace portolan {
namespace {

using device::cuda::UploadedArray;
using kernels::cuda::StepControl;

}  // namespace

std::vector<ParameterPlace> PlaceParameters(const NetworkPlan& plan, int64_t* count) {
  constexpr int64_t kStart = 64, kRow = 8;
  std::vector<ParameterPlace> places;
  *count = 0;
  for (const Parameter& parameter : plan.parameters) {
    ParameterPlace place;
    place.offset = *count;
    place.width = parameter.shape.back();
    place.rows = parameter.Count() / std::max<int64_t>(place.width, 1);
    place.stride = place.rows > 1 ? RoundUp(place.width, kRow) : place.width;
    *count = RoundUp(*count + place.rows * place.stride, kStart);
    places.push_back(place);
  }
  return places;
}

int64_t LayOutDeviceArena(const NetworkPlan& plan, std::vector<ArenaBuffer>* buffers) {
  constexpr int64_t kRow = 8;
  *buffers = plan.buffers;
  std::vector<int64_t> sizes;
  for (ArenaBuffer& buffer : *buffers) {
    buffer.width = RoundUp(buffer.width, kRow);
    sizes.push_back(buffer.width * plan.options.batch);
  }
  return LayOutArena(sizes, buffers);
}

template <typename T>
CudaNetwork<T>::CudaNetwork(NetworkPlan plan, kernels::cuda::ProductMath math, const TablePlacement& tables,
                            kernels::cuda::CachePolicy policy, uint64_t seed, Repeats repeats)
    : plan_(std::move(plan)),
      math_(math),
      gemm_(repeats == Repeats::kBitEqual ? kernels::cuda::CudaGemm::Choice::kLibrary
                                          : kernels::cuda::CudaGemm::Choice::kMeasured),
      layer_states_(plan_.layers.size()) {
  const int64_t batch = plan_.options.batch;
  MakeTables(tables, policy);  // the largest first: what does not fit fails here
  places_ = PlaceParameters(plan_, &parameter_count_);
  int parameters = 0;
  for (const NetworkLayer& layer : plan_.layers) {
    first_parameter_.push_back(parameters);
    parameters += static_cast<int>(layer.layer->parameters.size());
  }
  const int64_t floats = std::max<int64_t>(parameter_count_, 1) * 4;
  weights_ = DeviceMemory(floats, "dense parameters");
  gradients_ = DeviceMemory(floats, "gradients of dense parameters");
  state_ = DeviceMemory(floats * kernels::DenseStateFloats(plan_.options.dense_optimizer), "dense optimizer state");
  if (kNarrow) copy_ = DeviceMemory(floats / 2, "bf16 copy of dense parameters");
  const auto width = static_cast<int64_t>(sizeof(T));
  arena_ = DeviceMemory(LayOutDeviceArena(plan_, &buffers_) * width, "activations and gradients");
  dense_stride_ = RoundUp(std::max<int64_t>(plan_.dense_width, 1), 8);
  dense_ = DeviceMemory(batch * dense_stride_ * width, "dense inputs");
  logits_ = DeviceMemory(batch * 4, "logits");
  dlogits_ = DeviceMemory(batch * 4, "gradients of logits");
  int64_t widest = 1;
  for (const ParameterPlace& place : places_) widest = std::max(widest, std::max(place.width, place.rows));
  partial_ = DeviceMemory(4 * kernels::cuda::ColumnSumFloats(batch, widest, 2), "column sums");
  bias_gradient_ = DeviceMemory(widest * width, "a bias gradient");
  control_ = DeviceMemory(sizeof(StepControl), "step control");
  eval_control_ = DeviceMemory(sizeof(StepControl), "evaluation control");
  sum_partial_ = DeviceMemory(kernels::cuda::kNormPartials * 8, "partial sums");
  host_results_ = device::cuda::PinnedMemory(static_cast<int64_t>(sizeof(StepControl)) + batch * 4, "results");
  for (const DeviceMemory* memory : {&weights_, &gradients_, &state_, &copy_, &arena_, &dense_, &control_}) {
    device::cuda::FillZero(main_, memory->As<void>(), memory->bytes());
  }
  Initialise(seed);
  FuseReluGradients();
  main_.Wait();
}

template <typename T>
void CudaNetwork<T>::MakeTables(const TablePlacement& placement, kernels::cuda::CachePolicy policy) {
  for (const Table& table : plan_.tables) {
    first_row_.push_back(row_count_);
    row_count_ += static_cast<int64_t>(table.rows);
    max_dim_ = std::max(max_dim_, static_cast<int32_t>(table.dim));
  }
  if (!placement.caches.empty()) {
    host_tables_ = std::make_unique<CudaHostTables>(plan_, placement, policy, first_row_);
  }
  for (size_t t = 0; t < plan_.tables.size(); ++t) {
    const Table& table = plan_.tables[t];
    const auto rows = static_cast<int64_t>(table.rows);
    const int64_t floats = kernels::RowStateFloats(plan_.options.row_optimizer, table.dim);
    kernels::EmbeddingTable made = {nullptr, nullptr, rows, static_cast<int32_t>(table.dim), plan_.options.row};
    if (placement.cache_of[t] >= 0) {
      made.rows = host_tables_->Of(t).records;
      rows_.emplace_back();
      row_states_.emplace_back();
    } else {
      rows_.emplace_back(rows * kernels::RowBytes(plan_.options.row, table.dim), "embedding rows");
      row_states_.emplace_back(4 * rows * floats, "embedding optimizer state");
      device::cuda::FillZero(main_, row_states_.back().As<void>(), row_states_.back().bytes());
      made.rows = rows_.back().As<void>();
      if (floats > 0) made.state = row_states_.back().As<float>();
    }
    tables_.push_back(made);
  }
}

template <typename T>
void CudaNetwork<T>::Initialise(uint64_t seed) {
  for (size_t p = 0; p < plan_.parameters.size(); ++p) {
    const Parameter& parameter = plan_.parameters[p];
    const ParameterPlace& place = places_[p];
    float* values = Master(static_cast<int>(p));
    if (parameter.initial == InitialValues::kOne) {
      kernels::cuda::FillColumns<float>(place.rows, place.width, 1, {values, place.stride}, MainStream());
    } else if (parameter.initial == InitialValues::kNormal) {
      kernels::cuda::InitialNormal(kernels::RowKey(seed ^ kSeedOfParameters, p), parameter.deviation, place.rows,
                                   place.width, place.stride, values, MainStream());
    }
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    kernels::EmbeddingTable table = tables_[t];
    int64_t stride = kernels::RowBytes(table.format, table.dim);
    if (host_tables_ && host_tables_->Of(t).record_bytes > 0) {
      table.rows = host_tables_->Of(t).host;
      stride = host_tables_->Of(t).record_bytes;
    }
    kernels::cuda::InitialRows(seed ^ kSeedOfRows, t, table, stride, MainStream());
  }
  RefreshCopy();

  // Where the pooled rows and their gradients go never changes. Memory of the device starts at multiples of 256 bytes.
  plain_rows_ = plan_.options.row == kernels::RowFormat::kFp32 && plan_.features.size() == tables_.size();
  std::vector<bool> read(tables_.size());
  std::vector<kernels::EmbeddingFeature> outputs, gradients;
  for (const NetworkPlan::FeaturePlace& feature : plan_.features) {
    const auto place = [&](const Rows<T>& rows) {
      return kernels::EmbeddingFeature{feature.table, kernels::BagPooling::kSum,
                                       reinterpret_cast<float*>(rows.data + feature.column), rows.stride};
    };
    outputs.push_back(place(At(feature.value)));
    gradients.push_back(place(GradientAt(feature.value)));
    constexpr uintptr_t kFour = 4 * sizeof(T);
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(outputs.back().output) | reinterpret_cast<uintptr_t>(gradients.back().output);
    plain_rows_ = plain_rows_ && places % kFour == 0 && outputs.back().output_stride % 4 == 0 &&
                  gradients.back().output_stride % 4 == 0 && gradients.back().output_stride < (int64_t{1} << 32) &&
                  tables_[feature.table].dim % 4 == 0 && !read[feature.table];
    read[feature.table] = true;
  }
  device_tables_ = UploadedArray(tables_, "tables");
  device_outputs_ = UploadedArray(outputs, "features");
  device_gradients_ = UploadedArray(gradients, "features");
  device_first_row_ = UploadedArray(first_row_, "tables");
  // The gradients of pooled rows are whole when the lowest layer that reads one of them is done.
  fork_layer_ = plan_.layers.size();
  for (size_t l = 0; l < plan_.layers.size(); ++l) {
    for (const int input : plan_.layers[l].inputs) {
      const NetworkValue& value = plan_.values[input];
      if (value.producer < 0 && value.buffer >= 0) fork_layer_ = std::min(fork_layer_, l);
    }
  }
}

// A linear layer under another one, whose ReLU nobody else reads: the upper one's input gradient can take the mask and
// sum the bias gradient. cuBLASLt's kernels that do so can be much slower than its plain ones (on an H200 half as fast
// for 65,536 x 512 x 1024 in bf16), so both ways are timed.
template <typename T>
void CudaNetwork<T>::FuseReluGradients() {
  for (size_t l = 0; l + 1 < plan_.layers.size(); ++l) {
    const auto* upper = std::get_if<LinearSpec>(&plan_.layers[l].layer->spec);
    if (upper == nullptr) continue;
    const NetworkValue& between = plan_.values[plan_.layers[l].inputs[0]];
    if (between.producer < 0 || between.consumers != 1 || plan_.layers[l].added[0] >= 0) continue;
    const auto below = static_cast<size_t>(between.producer);
    const auto* lower = std::get_if<LinearSpec>(&plan_.layers[below].layer->spec);
    if (lower == nullptr || lower->activation != kernels::ActivationKind::kRelu) continue;
    const Io io = MakeIo(l, plan_.options.batch, Io::Pass::kTrain), io_below = MakeIo(below, io.rows, io.pass);
    const int64_t stride = places_[ParameterOf(l, 0)].stride, stride_below = places_[ParameterOf(below, 0)].stride;
    // Seconds; infinite where the library has no such kernel or nothing could be timed.
    const auto gradient = [&](kernels::cuda::Epilogue epilogue) {
      return SecondsOf(InputGradientProduct(io.rows, upper->in, upper->out, io.dy, stride, io.dx[0], 0, epilogue));
    };
    const auto forward = [&](kernels::cuda::Epilogue epilogue) {
      const int64_t in = std::min(PaddedWidth(plan_.layers[below].inputs[0], lower->in, Side::kValue), stride_below);
      return SecondsOf(ForwardProduct(io.rows, in, lower->out, io_below.x[0], stride_below, io_below.y, epilogue));
    };
    const double fused =
        gradient(kernels::cuda::Epilogue::kReluGradient) + forward(kernels::cuda::Epilogue::kBiasReluMask);
    if (!std::isfinite(fused)) continue;
    const double separate = gradient(kernels::cuda::Epilogue::kNone) + forward(kernels::cuda::Epilogue::kBiasRelu) +
                            ActivationGradientSeconds(*lower, io_below);
    if (fused >= separate) continue;
    layer_states_[l].relu_below = static_cast<int>(below);
    layer_states_[below].gradient_done = true;
    layer_states_[below].mask =
        DeviceMemory(plan_.options.batch * kernels::cuda::MaskStride(lower->out) / 8, "masks of activations");
  }
}

template <typename T>
double CudaNetwork<T>::SecondsOf(const kernels::cuda::CudaProduct& product) {
  const double seconds = gemm_.Prepare(product) ? gemm_.TimingOf(product).taken_s : 0;
  return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
}

template <typename T>
double CudaNetwork<T>::ActivationGradientSeconds(const LinearSpec& spec, const Io& io) {
  device::cuda::Event begin(device::cuda::Event::Timing::kTimed), end(device::cuda::Event::Timing::kTimed);
  double fastest = std::numeric_limits<double>::infinity();
  constexpr int kRuns = 3;
  for (int run = 0; run <= kRuns; ++run) {
    begin.Record(main_);
    ActivationGradient(spec, io);
    end.Record(main_);
    end.Wait();
    if (run > 0) fastest = std::min(fastest, end.MillisecondsSince(begin) * 1e-3);  // the first warms up
  }
  return fastest;
}

template <typename T>
void CudaNetwork<T>::RefreshCopy() {
  if constexpr (kNarrow) {
    kernels::cuda::Convert<float, Bf16>(1, parameter_count_, {weights_.As<float>(), parameter_count_},
                                        {copy_.As<Bf16>(), parameter_count_}, MainStream());
  }
  StepControl control;
  control.apply = 1;
  device::cuda::CopyToDevice(main_, &control, sizeof(control), control_.As<void>());
  main_.Wait();
}

template class CudaNetwork<float>;
template class CudaNetwork<Bf16>;

}  // namespace portolan
