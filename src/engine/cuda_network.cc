#include "engine/cuda_network.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/cuda_network_state.h"

// The steps of the CUDA network; cuda_setup.cc makes it.
namespace portolan {
namespace {

using device::cuda::Queue;
using kernels::cuda::EmbeddingLookups;
using kernels::cuda::StepControl;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

template <typename T>
typename CudaNetwork<T>::template Rows<T> CudaNetwork<T>::BufferAt(int buffer) const {
  return {arena_.As<T>() + buffers_[buffer].offset, buffers_[buffer].width};
}
template <typename T>
typename CudaNetwork<T>::template Rows<T> CudaNetwork<T>::At(int value) const {
  const NetworkValue& place = plan_.values[value];
  if (place.buffer < 0) return {dense_.As<T>() + place.dense_column, dense_stride_};
  const Rows<T> rows = BufferAt(place.buffer);
  return {rows.data + place.column, rows.stride};
}
template <typename T>
typename CudaNetwork<T>::template Rows<T> CudaNetwork<T>::GradientAt(int value) const {
  const NetworkValue& place = plan_.values[value];
  if (place.gradient < 0) return {};
  const Rows<T> rows = BufferAt(place.gradient);
  return {rows.data + place.column, rows.stride};
}
template <typename T>
typename CudaNetwork<T>::Io CudaNetwork<T>::MakeIo(size_t index, int64_t rows, typename Io::Pass pass) {
  const NetworkLayer& layer = plan_.layers[index];
  Io io;
  io.layer = index;
  io.rows = rows;
  io.pass = pass;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    io.x.push_back(At(layer.inputs[i]));
    io.dx.push_back(layer.added[i] >= 0 ? BufferAt(layer.added[i]) : GradientAt(layer.inputs[i]));
  }
  io.y = At(layer.output);
  io.dy = GradientAt(layer.output);
  for (const int buffer : layer.scratch) io.scratch.push_back(BufferAt(buffer));
  return io;
}

template <typename T>
const DeviceBatch& CudaNetwork<T>::Bind(const Batch& batch) {
  PORTOLAN_CHECK(batch.size <= plan_.options.batch, "batch larger than planned");
  if (batch.device == nullptr) uploaded_.Upload(batch, main_);
  const DeviceBatch& bound = batch.device != nullptr ? *batch.device : uploaded_;
  const int64_t needed = host_tables_ != nullptr ? 0 : kernels::cuda::EmbeddingWorkspaceBytes(bound.lookups, max_dim_);
  if (needed > sort_space_.bytes()) {
    sort_space_ = DeviceMemory();
    sort_space_ = DeviceMemory(needed + needed / 16, "sorting lookups");
  }
  return bound;
}

template <typename T>
EmbeddingLookups CudaNetwork<T>::Lookups(const DeviceBatch& batch, const DeviceMemory& features) const {
  EmbeddingLookups lookups;
  lookups.tables = device_tables_.As<kernels::EmbeddingTable>();
  lookups.features = features.As<kernels::EmbeddingFeature>();
  lookups.table_count = static_cast<int32_t>(tables_.size());
  lookups.feature_count = static_cast<int32_t>(plan_.features.size());
  lookups.max_dim = max_dim_;
  lookups.batch = batch.size;
  lookups.lookups = batch.lookups;
  lookups.row_count = row_count_;
  lookups.first_row = device_first_row_.As<int64_t>();
  lookups.offsets = batch.offsets;
  lookups.ids = batch.ids;
  lookups.weights = batch.id_weights;
  lookups.plain_rows = plain_rows_;
  if (host_tables_ != nullptr) lookups.cached = host_tables_->device_cached();
  return lookups;
}

template <typename T>
void CudaNetwork<T>::ForwardRows(const DeviceBatch& batch, const int64_t* places) {
  const auto row_bytes = static_cast<double>(kernels::RowBytes(plan_.options.row, max_dim_));
  const double lookups = static_cast<double>(batch.lookups);
  Do("embedding forward",
     lookups * (row_bytes + 8) +
         static_cast<double>(batch.size) * static_cast<double>(plan_.features.size()) * (max_dim_ * sizeof(T) + 8.0),
     0, [&] {
       EmbeddingLookups bags = Lookups(batch, device_outputs_);
       if (places != nullptr) bags.ids = places;
       kernels::cuda::EmbeddingForward<T>(bags, MainStream());
     });
}
template <typename T>
void CudaNetwork<T>::ForwardLayers(const DeviceBatch& batch, typename Io::Pass pass) {
  Do("dense input", static_cast<double>(batch.size * plan_.dense_width) * (4 + sizeof(T)), 0, [&] {
    kernels::cuda::Convert<float, T>(batch.size, plan_.dense_width, {batch.dense, plan_.dense_width},
                                     {dense_.As<T>(), dense_stride_}, MainStream());
  });
  for (size_t l = 0; l < plan_.layers.size(); ++l) Forward(MakeIo(l, batch.size, pass));
}

template <typename T>
void CudaNetwork<T>::BackwardLayer(const DeviceBatch& batch, size_t index) {
  const NetworkLayer& layer = plan_.layers[index];
  const Io io = MakeIo(index, batch.size, Io::Pass::kTrain);
  Backward(io);
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (layer.added[i] < 0) continue;
    const int64_t width = plan_.values[layer.inputs[i]].width;
    Do("add gradients", 3.0 * static_cast<double>(batch.size * width) * sizeof(T), 0, [&] {
      kernels::cuda::CopyOrAdd<T>(batch.size, width, {io.dx[i].data, io.dx[i].stride}, GradientAt(layer.inputs[i]),
                                  kernels::cuda::Assign::kAdd, MainStream());
    });
  }
}

template <typename T>
StepResult CudaNetwork<T>::TrainStep(const Batch& host_batch, const UpdateSettings& settings, float* logits,
                                     const std::function<void()>& beside) {
  const double begin = Now();
  const DeviceBatch& batch = Bind(host_batch);
  const Queue& row_queue = profile_ == Profile::kOperations ? main_ : side_;
  auto* control = control_.As<StepControl>();
  const bool has_rows = !plan_.features.empty() && batch.lookups > 0;
  // Tables in host memory: the batch's rows are found and sorted while the step before is trained on.
  const CudaHostTables::Found* found = nullptr;
  if (has_rows && host_tables_) {
    Do("find and load rows", static_cast<double>(batch.lookups) * 32, 0, [&] {
      found = &host_tables_->Take(host_batch.device, Lookups(batch, device_gradients_));
      found->done.HoldBack(main_);
    });
  }

  if (profile_ == Profile::kSteps) {
    timed_.push_back(Timed::Of("step, as trained", 0, 0));
    timed_.back().begin->Record(main_);
  }
  ForwardRows(batch, found != nullptr ? found->places.template As<int64_t>() : nullptr);
  // The sort needs the ids alone: it runs beside the layers, which leave it the bandwidth that the pooling would not.
  kernels::cuda::SortedLookups sorted;
  if (found != nullptr) {
    sorted = found->sorted;
  } else if (has_rows) {
    pooled_.Record(main_);
    pooled_.HoldBack(row_queue);
    Do("sort lookups", static_cast<double>(batch.lookups) * 16, 0, row_queue, [&] {
      sorted = kernels::cuda::SortByRow(Lookups(batch, device_gradients_), sort_space_.As<void>(), sort_space_.bytes(),
                                        row_queue.stream());
    });
  }
  ForwardLayers(batch, Io::Pass::kTrain);
  Do("loss", static_cast<double>(batch.size) * 12, 0, [&] {
    kernels::cuda::LossAndGradient(batch.size, logits_.As<float>(), batch.labels, batch.sample_weights,
                                   1.0f / static_cast<float>(batch.size), dlogits_.As<float>(),
                                   sum_partial_.As<double>(), control, MainStream());
  });

  const kernels::RowUpdate update = RowUpdateOf(settings, plan_.options.row_optimizer);
  const auto update_rows = [&] {
    gradients_ready_.Record(main_);
    gradients_ready_.HoldBack(row_queue);
    Do("embedding backward", static_cast<double>(batch.lookups) * (max_dim_ * sizeof(T) + 8.0), 0, row_queue, [&] {
      kernels::cuda::EmbeddingUpdate<T>(Lookups(batch, device_gradients_), sorted, update, control, row_queue.stream());
    });
    rows_updated_.Record(row_queue);
  };
  const bool clips = settings.clip_norm > 0;
  for (size_t l = plan_.layers.size(); l-- > 0;) {
    BackwardLayer(batch, l);
    if (l == fork_layer_ && has_rows && !clips) update_rows();
  }
  if (clips) {
    kernels::cuda::RowSquares squares;
    if (has_rows) {
      sorted_.Record(row_queue);
      sorted_.HoldBack(main_);
    }
    Do("gradient norm", 0, 0, [&] {
      if (has_rows) {
        squares = kernels::cuda::EmbeddingSquares<T>(Lookups(batch, device_gradients_), sorted, control, MainStream());
      }
      kernels::cuda::ClipScale(parameter_count_, gradients_.As<float>(), squares.values, squares.count,
                               settings.clip_norm, sum_partial_.As<double>(), control, MainStream());
    });
    if (has_rows) update_rows();
  }
  UpdateDense(settings);
  if (has_rows) rows_updated_.HoldBack(main_);

  if (profile_ == Profile::kSteps) timed_.back().end->Record(main_);
  auto* results = host_results_.As<char>();
  if (found != nullptr && expected_ != nullptr) {
    const std::shared_ptr<const DeviceBatch> next = std::exchange(expected_, nullptr);
    if (next->lookups > 0) host_tables_->Ahead(next, Lookups(*next, device_gradients_), rows_updated_);
  }
  device::cuda::CopyToHost(main_, control, sizeof(StepControl), results);
  device::cuda::CopyToHost(main_, logits_.As<void>(), batch.size * 4, results + sizeof(StepControl));
  if (beside) beside();
  main_.Wait();
  const auto& outcome = *reinterpret_cast<const StepControl*>(results);
  std::copy_n(reinterpret_cast<const float*>(results + sizeof(StepControl)), batch.size, logits);
  StepResult result;
  result.loss = outcome.loss / static_cast<double>(batch.size);
  if (clips) result.gradient_norm = std::sqrt(outcome.squared_norm);
  phases_ = {{"step", begin, Now()}};
  return result;
}

template <typename T>
void CudaNetwork<T>::UpdateDense(const UpdateSettings& settings) {
  const kernels::DenseUpdate dense = DenseUpdateOf(settings, plan_.options.dense_optimizer);
  const double numbers = 3 + 2.0 * static_cast<double>(kernels::DenseStateFloats(dense.kind)) + (kNarrow ? 0.5 : 0);
  Do("dense optimizer", 4 * numbers * static_cast<double>(parameter_count_), 0, [&] {
    kernels::cuda::DenseUpdateStep(dense, parameter_count_, gradients_.As<float>(), weights_.As<float>(),
                                   state_.As<float>(), kNarrow ? copy_.As<Bf16>() : nullptr, control_.As<StepControl>(),
                                   MainStream());
  });
}

template <typename T>
double CudaNetwork<T>::Evaluate(const Batch& host_batch, float* logits) {
  const DeviceBatch& batch = Bind(host_batch);
  ForwardRows(batch, host_tables_ ? host_tables_->PlacesOf(Lookups(batch, device_outputs_), main_) : nullptr);
  ForwardLayers(batch, Io::Pass::kEvaluate);
  // The loss of an evaluation must not stop the training: it goes to a control of its own.
  auto* control = eval_control_.As<StepControl>();
  kernels::cuda::LossAndGradient(batch.size, logits_.As<float>(), batch.labels, batch.sample_weights, 0, nullptr,
                                 sum_partial_.As<double>(), control, MainStream());
  auto* results = host_results_.As<char>();
  device::cuda::CopyToHost(main_, control, sizeof(StepControl), results);
  device::cuda::CopyToHost(main_, logits_.As<void>(), batch.size * 4, results + sizeof(StepControl));
  main_.Wait();
  std::copy_n(reinterpret_cast<const float*>(results + sizeof(StepControl)), batch.size, logits);
  return reinterpret_cast<const StepControl*>(results)->loss / static_cast<double>(std::max<int64_t>(batch.size, 1));
}

template <typename T>
void CudaNetwork<T>::SetProfile(Profile profile) {
  main_.Wait();
  side_.Wait();
  profile_ = profile;
  timed_.clear();
}
template <typename T>
std::vector<OperationTime> CudaNetwork<T>::TakeProfile() {
  std::vector<OperationTime> times;
  for (const Timed& timed : timed_) {
    times.push_back({timed.name, timed.end->MillisecondsSince(*timed.begin) * 1e-3, timed.bytes, timed.flops});
  }
  timed_.clear();
  return times;
}

template class CudaNetwork<float>;
template class CudaNetwork<Bf16>;

}  // namespace portolan
