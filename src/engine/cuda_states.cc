#include <cstring>

#include "engine/cuda_network_state.h"

// The state of the CUDA network as host memory, laid out as Network's, so that a checkpoint goes from one device to
// another.
namespace portolan {
namespace {

// Rows and states of a table in host memory, whose records hold them side by side, to or from arrays of their own.
enum class Records { kRead, kWrite };
void CopyRecords(const kernels::cuda::CachedTable& table, int64_t count, char* rows, char* states, Records direction) {
  const int64_t state_bytes = int64_t{4} * table.state_floats;
#pragma omp parallel for
  for (int64_t r = 0; r < count; ++r) {
    char* record = table.host_records + r * table.record_bytes;
    const auto copy = [&](char* part, char* array, int64_t bytes) {
      char* from = direction == Records::kRead ? part : array;
      std::memcpy(direction == Records::kRead ? array : part, from, static_cast<size_t>(bytes));
    };
    copy(record, rows + r * table.row_bytes, table.row_bytes);
    if (state_bytes > 0) copy(record + table.state_offset, states + r * state_bytes, state_bytes);
  }
}

}  // namespace

template <typename T>
std::vector<TrainableNetwork::State> CudaNetwork<T>::States() {
  main_.Wait();
  side_.Wait();
  mirror_.clear();
  if (host_tables_) host_tables_->WriteBack();
  const auto host = [&](int64_t bytes) {
    mirror_.emplace_back(new char[static_cast<size_t>(std::max<int64_t>(bytes, 1))]);
    return mirror_.back().get();
  };
  const auto pull = [&](const float* flat, size_t p, void* to) {
    const ParameterPlace& place = places_[p];
    device::cuda::CheckRuntime(cudaMemcpy2D(to, static_cast<size_t>(place.width) * 4, flat + place.offset,
                                            static_cast<size_t>(place.stride) * 4, static_cast<size_t>(place.width) * 4,
                                            static_cast<size_t>(place.rows), cudaMemcpyDeviceToHost),
                               "reading parameters");
  };
  std::vector<State> states;
  for (size_t p = 0; p < plan_.parameters.size(); ++p) {
    const Parameter& parameter = plan_.parameters[p];
    char* data = host(4 * parameter.Count());
    pull(weights_.As<float>(), p, data);
    states.push_back({parameter.name, "F32", parameter.shape, data, 4 * parameter.Count(), State::Kind::kParameter});
  }
  const int64_t slots = kernels::DenseStateFloats(plan_.options.dense_optimizer);
  if (slots > 0) {
    char* data = host(4 * slots * plan_.dense_parameters);
    for (int64_t slot = 0; slot < slots; ++slot) {
      for (size_t p = 0; p < plan_.parameters.size(); ++p) {
        pull(state_.As<float>() + slot * parameter_count_, p,
             data + 4 * (slot * plan_.dense_parameters + plan_.parameters[p].offset));
      }
    }
    states.push_back({"optimizer.dense",
                      "F32",
                      {slots, plan_.dense_parameters},
                      data,
                      4 * slots * plan_.dense_parameters,
                      State::Kind::kOptimizer});
  }
  const auto whole = [&](const DeviceMemory& memory) {
    char* data = host(memory.bytes());
    device::cuda::CheckRuntime(
        cudaMemcpy(data, memory.As<void>(), static_cast<size_t>(memory.bytes()), cudaMemcpyDeviceToHost),
        "reading embedding rows");
    return data;
  };
  for (size_t t = 0; t < tables_.size(); ++t) {
    const kernels::EmbeddingTable& table = tables_[t];
    if (host_tables_ && host_tables_->Of(t).record_bytes > 0) {
      const kernels::cuda::CachedTable& cached = host_tables_->Of(t);
      char* rows = host(table.row_count * cached.row_bytes);
      char* row_state = cached.state_floats > 0 ? host(table.row_count * 4 * cached.state_floats) : nullptr;
      CopyRecords(cached, table.row_count, rows, row_state, Records::kRead);
      AddTableStates(plan_.tables[t].name, table, plan_.options.row_optimizer, rows, row_state, &states);
      continue;
    }
    char* rows = whole(rows_[t]);  // first: FinishStates goes by the order
    char* row_state =
        kernels::RowStateFloats(plan_.options.row_optimizer, table.dim) > 0 ? whole(row_states_[t]) : nullptr;
    AddTableStates(plan_.tables[t].name, table, plan_.options.row_optimizer, rows, row_state, &states);
  }
  return states;
}

template <typename T>
void CudaNetwork<T>::FinishStates(StateUse use) {
  if (use == StateUse::kChanged) {
    // In the order in which States made them.
    size_t next = 0;
    const auto push = [&](float* flat, size_t p, const void* from) {
      const ParameterPlace& place = places_[p];
      device::cuda::CheckRuntime(
          cudaMemcpy2D(flat + place.offset, static_cast<size_t>(place.stride) * 4, from,
                       static_cast<size_t>(place.width) * 4, static_cast<size_t>(place.width) * 4,
                       static_cast<size_t>(place.rows), cudaMemcpyHostToDevice),
          "writing parameters");
    };
    for (size_t p = 0; p < plan_.parameters.size(); ++p) push(weights_.As<float>(), p, mirror_[next++].get());
    const int64_t slots = kernels::DenseStateFloats(plan_.options.dense_optimizer);
    for (int64_t slot = 0; slot < slots; ++slot) {
      for (size_t p = 0; p < plan_.parameters.size(); ++p) {
        push(state_.As<float>() + slot * parameter_count_, p,
             mirror_[next].get() + 4 * (slot * plan_.dense_parameters + plan_.parameters[p].offset));
      }
    }
    if (slots > 0) ++next;
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (host_tables_ && host_tables_->Of(t).record_bytes > 0) {
        const kernels::cuda::CachedTable& cached = host_tables_->Of(t);
        char* rows = mirror_[next++].get();
        char* row_state = cached.state_floats > 0 ? mirror_[next++].get() : nullptr;
        CopyRecords(cached, tables_[t].row_count, rows, row_state, Records::kWrite);
        continue;
      }
      const auto whole = [&](const DeviceMemory& memory) {
        device::cuda::CheckRuntime(cudaMemcpy(memory.As<void>(), mirror_[next++].get(),
                                              static_cast<size_t>(memory.bytes()), cudaMemcpyHostToDevice),
                                   "writing embedding rows");
      };
      whole(rows_[t]);
      if (row_states_[t].bytes() > 0) whole(row_states_[t]);
    }
    if (host_tables_) host_tables_->Clear();
    RefreshCopy();
  }
  mirror_.clear();
}

template std::vector<TrainableNetwork::State> CudaNetwork<float>::States();
template std::vector<TrainableNetwork::State> CudaNetwork<Bf16>::States();
template void CudaNetwork<float>::FinishStates(StateUse);
template void CudaNetwork<Bf16>::FinishStates(StateUse);

}  // namespace portolan
