#pragma once

#include <cmath>

#include "kernels/cuda_rows.h"
#include "kernels/embedding/cuda_cache.h"
#include "kernels/embedding/cuda_chunks.h"
#include "kernels/embedding/gpu_update.h"

// The kernels of the backward pass, for the sources that instantiate them.
namespace portolan::kernels::cuda {

constexpr int kUpdateThreads = 256;

// What one level works on.
struct ChunkWork {
  EmbeddingLookups bags;  // features point to gradients
  Level level;
  const uint32_t* rows;      // [count]
  const uint32_t* places;    // level 0: [count]
  const uint32_t* bag_of;    // level 0, with weights
  const uint32_t* features;  // later levels: [count]
  const float* sums;         // later levels: [count, max_dim]
  int sample_bits;
  const StepControl* control;
};

// kPlain: every table is read by one feature, its rows are fp32, no wider than the group of lanes takes at once, and
// they, their state and the gradients can be read 16 bytes at a time; lookups have no weights. So a run needs one look
// at its table, and the row is on its way while its gradients are summed.
enum class RowPath { kPlain, kAny };

// Level 0: the entries are lookups, whose gradients are those of their bags.
template <typename T>
struct LookupSums {
  static constexpr int kEntries = kChunk;  // of a chunk
  static __device__ __forceinline__ uint32_t Place(const ChunkWork& work, int64_t entry) {
    const uint32_t place = __ldg(work.places + entry);
    return work.bag_of != nullptr ? work.bag_of[place] : place;
  }
  static __device__ __forceinline__ int32_t Feature(const ChunkWork& work, int64_t entry) {
    return static_cast<int32_t>(static_cast<uint64_t>(Place(work, entry)) >> work.sample_bits);
  }
  static __device__ __forceinline__ bool Has(const ChunkWork&, int64_t) { return true; }
  // The sum of the entries [begin, end), all of which are of `feature`; kPlain.
  static __device__ __forceinline__ Numbers<4> PlainSum(const ChunkWork& work, const EmbeddingFeature& feature,
                                                        int64_t begin, int64_t end, int column) {
    constexpr int kAtOnce = 8;
    const T* base = reinterpret_cast<const T*>(feature.output) + column;
    const uint32_t* places = work.places + begin;
    const uint32_t mask = (1u << work.sample_bits) - 1u;
    const auto stride = static_cast<uint32_t>(feature.output_stride);
    const int count = static_cast<int>(end - begin);
    Numbers<4> sum = {};
    int i = 0;
    for (; i + kAtOnce <= count; i += kAtOnce) {
      Numbers<4> part[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        part[k] = LoadNumbers<4>(base + static_cast<uint64_t>(__ldg(places + i + k) & mask) * stride);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        for (int c = 0; c < 4; ++c) sum.value[c] += part[k].value[c];
      }
    }
    Numbers<4> part[kAtOnce - 1];
#pragma unroll
    for (int k = 0; k < kAtOnce - 1; ++k) {
      part[k] = {};
      if (i + k < count) part[k] = LoadNumbers<4>(base + static_cast<uint64_t>(__ldg(places + i + k) & mask) * stride);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce - 1; ++k) {
      if (i + k >= count) break;
      for (int c = 0; c < 4; ++c) sum.value[c] += part[k].value[c];
    }
    return sum;
  }
  static __device__ __forceinline__ Quad Load(const ChunkWork& work, int64_t entry, int column, int dim) {
    const uint32_t place = Place(work, entry);
    const auto sample = static_cast<int64_t>(place & ((uint64_t{1} << work.sample_bits) - 1));
    const EmbeddingFeature& feature = work.bags.features[static_cast<uint64_t>(place) >> work.sample_bits];
    const T* gradient = reinterpret_cast<const T*>(feature.output) + sample * feature.output_stride + column;
    Quad quad = {};
    if (column + kLaneColumns <= dim && reinterpret_cast<uintptr_t>(gradient) % (kLaneColumns * sizeof(T)) == 0) {
      const auto numbers = LoadNumbers<kLaneColumns>(gradient);
      for (int i = 0; i < kLaneColumns; ++i) quad.value[i] = numbers.value[i];
    } else {
      for (int i = 0; i < kLaneColumns; ++i) quad.value[i] = column + i < dim ? ToFloat(gradient[i]) : 0.0f;
    }
    if (work.bags.weights != nullptr) {
      const float weight = work.bags.weights[work.places[entry]];
      for (int i = 0; i < kLaneColumns; ++i) quad.value[i] *= weight;
    }
    return quad;
  }
};

// Later levels: the entries are sums of chunks.
struct ChunkSums {
  static constexpr int kEntries = kLaterChunk;
  static __device__ __forceinline__ int32_t Feature(const ChunkWork& work, int64_t entry) {
    return static_cast<int32_t>(work.features[entry]);
  }
  static __device__ __forceinline__ bool Has(const ChunkWork& work, int64_t entry) {
    return (work.rows[entry] & kNoSum) == 0;
  }
  static __device__ __forceinline__ Quad Load(const ChunkWork& work, int64_t entry, int column, int dim) {
    const float* sum = work.sums + entry * work.bags.max_dim;
    return LoadFloats<kLaneColumns>(sum, column, dim, work.bags.max_dim % 4 == 0);
  }
  static __device__ __forceinline__ Numbers<4> PlainSum(const ChunkWork& work, const EmbeddingFeature&, int64_t begin,
                                                        int64_t end, int column) {
    Numbers<4> sum = {};
#pragma unroll 4
    for (int64_t entry = begin; entry < end; ++entry) {
      if (!Has(work, entry)) continue;
      const auto part = LoadNumbers<4>(work.sums + entry * work.bags.max_dim + column);
      for (int c = 0; c < 4; ++c) sum.value[c] += part.value[c];
    }
    return sum;
  }
};

// A row and its state on their way to a group of lanes, four columns a lane; kPlain.
template <RowOptimizer kOptimizer, int kLanes>
struct PlainRow {
  float* row;    // own columns
  float* state;  // of the row
  int column, dim;
  bool own;  // has columns
  Numbers<4> weights, first, second;
  float row_state;

  __device__ __forceinline__ PlainRow(const EmbeddingTable& table, int64_t r, int own_column)
      : column(own_column), dim(table.dim), own(own_column < table.dim) {
    row = static_cast<float*>(table.rows) + r * dim + column;
    state = table.state + r * RowStateFloats(kOptimizer, dim);
    weights = first = second = {};
    row_state = 0;
    if (own) weights = LoadStreamed(row);
    if constexpr (kOptimizer == RowOptimizer::kAdagrad || kOptimizer == RowOptimizer::kAdam) {
      if (own) first = LoadStreamed(state + column);
      if constexpr (kOptimizer == RowOptimizer::kAdam) {
        if (own) second = LoadStreamed(state + dim + column);
      }
    } else if constexpr (kOptimizer == RowOptimizer::kRowwiseAdagrad) {
      row_state = *state;
    }
  }

  __device__ __forceinline__ void Step(const RowStep& step, Numbers<4> gradient) {
    const RowUpdate& u = step.update;
    for (int c = 0; c < 4; ++c) gradient.value[c] *= u.gradient_scale;
    if constexpr (kOptimizer == RowOptimizer::kSgd) {
      for (int c = 0; c < 4; ++c) weights.value[c] -= u.learning_rate * gradient.value[c];
    } else if constexpr (kOptimizer == RowOptimizer::kAdagrad) {
      for (int c = 0; c < 4; ++c) {
        const float g = gradient.value[c];
        first.value[c] += g * g;
        weights.value[c] -= u.learning_rate * g / (sqrtf(first.value[c]) + u.epsilon);
      }
      if (own) StoreStreamed(first, state + column);
    } else if constexpr (kOptimizer == RowOptimizer::kRowwiseAdagrad) {
      float squares = 0;
      for (int c = 0; c < 4; ++c) squares += own ? gradient.value[c] * gradient.value[c] : 0.0f;
      row_state += device::cuda::WaveSum<kLanes>(squares) / static_cast<float>(dim);
      if (column == 0) *state = row_state;
      const float rate = u.learning_rate / (sqrtf(row_state) + u.epsilon);
      for (int c = 0; c < 4; ++c) weights.value[c] -= rate * gradient.value[c];
    } else {
      for (int c = 0; c < 4; ++c) {
        const float g = gradient.value[c];
        first.value[c] = u.beta1 * first.value[c] + (1 - u.beta1) * g;
        second.value[c] = u.beta2 * second.value[c] + (1 - u.beta2) * g * g;
        weights.value[c] -= u.learning_rate * (first.value[c] * step.correction1) /
                            (sqrtf(second.value[c] * step.correction2) + u.epsilon);
      }
      if (own) {
        StoreStreamed(first, state + column);
        StoreStreamed(second, state + dim + column);
      }
    }
    if (own) StoreStreamed(weights, row);
  }
};

// The gradient of the entries [begin, end), which belong to one row.
template <typename Source>
struct EntrySum {
  const ChunkWork* work;
  int64_t begin, end;

  __device__ __forceinline__ Quad Sum(int column, int dim) const {
    constexpr int kAtOnce = 4;
    Quad sum = {};
    for (int64_t entry = begin; entry < end; entry += kAtOnce) {
      Quad part[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (entry + k < end && Source::Has(*work, entry + k)) part[k] = Source::Load(*work, entry + k, column, dim);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        for (int i = 0; i < kLaneColumns; ++i) sum.value[i] += part[k].value[i];
      }
    }
    return sum;
  }
};

// What is done with the gradient of a whole row.
template <RowOptimizer kOptimizer>
struct TakeStep {
  static constexpr bool kHasPlain = kOptimizer != RowOptimizer::kRowwiseAdam;
  RowStep step;
  template <int kLanes, typename Source>
  __device__ __forceinline__ void TakePlain(const ChunkWork& work, const EmbeddingFeature& feature,
                                            const EmbeddingTable& table, int64_t row, int64_t begin,
                                            int64_t end) const {
    const int column = threadIdx.x % kLanes * kLaneColumns;
    PlainRow<kOptimizer, kLanes> place(table, row, column);
    Numbers<4> sum = {};
    if (place.own) sum = Source::PlainSum(work, feature, begin, end, column);
    place.Step(step, sum);
  }
  template <int kLanes, typename Gradient>
  __device__ __forceinline__ void Take(const RowPlace& place, const Gradient& gradient, double*) const {
    UpdateRow<kLanes, kOptimizer>(step, place, gradient);
  }
  __device__ __forceinline__ TakeStep Scaled(float scale) const {
    TakeStep scaled = *this;
    scaled.step.update.gradient_scale *= scale;
    return scaled;
  }
};
struct TakeSquare {
  static constexpr bool kHasPlain = false;
  template <int kLanes, typename Gradient>
  __device__ __forceinline__ void Take(const RowPlace& place, const Gradient& gradient, double* squares) const {
    for (int column = threadIdx.x % kLanes * kLaneColumns; column < place.table.dim; column += kLanes * kLaneColumns) {
      const Quad values = gradient.Sum(column, place.table.dim);
      for (int i = 0; i < kLaneColumns; ++i) *squares += static_cast<double>(values.value[i]) * values.value[i];
    }
  }
  __device__ __forceinline__ TakeSquare Scaled(float) const { return *this; }
};

// Where rows of the table lie in records: so that rows and state of this one are found at its number as everywhere.
__device__ __forceinline__ void FindRecord(const CachedTable& cached, RowPlace* place) {
  if (cached.record_bytes == 0) return;
  const uint32_t slot = cached.slots[place->row];
  char* record = slot == kNoSlot ? cached.host + place->row * cached.record_bytes
                                 : cached.records + static_cast<int64_t>(slot) * cached.record_bytes;
  place->table.rows = record - place->row * cached.row_bytes;
  place->table.state = reinterpret_cast<float*>(record + cached.state_offset) - place->row * cached.state_floats;
}

// Bit i: entry i of the chunk is the first of its row. Every lane of the wave takes part.
template <int kEntries, int kLanes>
__device__ __forceinline__ uint64_t FirstEntries(const ChunkWork& work, int64_t begin, int64_t end) {
  const int lane = threadIdx.x % kLanes, group_in_wave = threadIdx.x % 32 / kLanes;
  uint64_t firsts = 0;
#pragma unroll
  for (int step = 0; step < kEntries / kLanes; ++step) {
    const int64_t entry = begin + step * kLanes + lane;
    const bool first = entry < end && (entry == begin || ((work.rows[entry] ^ work.rows[entry - 1]) & kRowMask) != 0);
    const unsigned votes = __ballot_sync(0xffffffffu, first);
    const auto own = static_cast<uint64_t>(
        kLanes == 32 ? votes : (votes >> (group_in_wave * kLanes)) & ((1u << (kLanes % 32)) - 1u));
    firsts |= own << (step * kLanes);
  }
  return firsts;
}

template <typename Source, typename Action, int kLanes, RowPath kPath>
__global__ void __launch_bounds__(kUpdateThreads) TakeChunks(const ChunkWork work, const Action action_given) {
  if (work.control->apply == 0) return;
  const Action action = action_given.Scaled(work.control->gradient_scale);
  const int lane = threadIdx.x % kLanes;
  const int64_t chunk = blockIdx.x * int64_t{kUpdateThreads / kLanes} + threadIdx.x / kLanes;
  const int64_t begin = chunk * Source::kEntries;
  const int64_t end = begin + Source::kEntries < work.level.count ? begin + Source::kEntries : work.level.count;
  uint64_t firsts = FirstEntries<Source::kEntries, kLanes>(work, begin, end);
  if (begin >= end) return;

  const auto row_of = [&](int64_t entry) { return work.rows[entry] & kRowMask; };
  uint32_t left_row[2] = {kNoRow, kNoRow};  // what goes to the next level
  uint32_t left_feature[2] = {0, 0};
  double squares = 0;
  while (firsts != 0) {
    const int64_t first = begin + __ffsll(static_cast<long long>(firsts)) - 1;
    firsts &= firsts - 1;
    const int64_t last = firsts != 0 ? begin + __ffsll(static_cast<long long>(firsts)) - 1 : end;
    const uint32_t row = row_of(first);
    if (row == (kNoRow & kRowMask)) continue;
    const EntrySum<Source> gradient = {&work, first, last};
    const int32_t feature = Source::Feature(work, first);
    RowPlace place;
    place.table_index = work.bags.features[feature].table;
    place.table = work.bags.tables[place.table_index];
    place.row = static_cast<int64_t>(row) - work.bags.first_row[place.table_index];
    if (work.bags.cached != nullptr) FindRecord(work.bags.cached[place.table_index], &place);
    const bool from_before = first == begin && begin > 0 && row_of(begin - 1) == row;
    const bool goes_on = last == end && end < work.level.count && row_of(end) == row;
    if (!from_before && !goes_on) {
      if constexpr (kPath == RowPath::kPlain) {
        action.template TakePlain<kLanes, Source>(work, work.bags.features[feature], place.table, place.row, first,
                                                  last);
      } else {
        action.template Take<kLanes>(place, gradient, &squares);
      }
      continue;
    }
    const int slot = from_before ? 0 : 1;
    float* sum = work.level.next_sums + (2 * chunk + slot) * work.bags.max_dim;
    if constexpr (kPath == RowPath::kPlain) {
      const int column = lane * kLaneColumns;
      if (column < place.table.dim) {
        StoreNumbers(Source::PlainSum(work, work.bags.features[feature], first, last, column), sum + column);
      }
    } else {
      for (int column = lane * kLaneColumns; column < place.table.dim; column += kLanes * kLaneColumns) {
        StoreFloats(gradient.Sum(column, place.table.dim), sum, column, place.table.dim, work.bags.max_dim % 4 == 0);
      }
    }
    left_row[slot] = row;
    left_feature[slot] = static_cast<uint32_t>(feature);
    if (from_before && goes_on) {  // so that the places of the row stand side by side
      left_row[1] = row | kNoSum;
      left_feature[1] = static_cast<uint32_t>(feature);
    }
  }
  if (lane < 2 && work.level.next_rows != nullptr) {
    work.level.next_rows[2 * chunk + lane] = left_row[lane];
    work.level.next_features[2 * chunk + lane] = left_feature[lane];
  }
  if constexpr (std::is_same_v<Action, TakeSquare>) {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      squares += __shfl_xor_sync(device::cuda::GroupMask<kLanes>(), squares, distance, kLanes);
    }
    if (lane == 0) work.level.squares[chunk] = squares;
  }
}

template <typename T, typename Action, int kLanes, RowPath kPath>
void RunLevels(const EmbeddingLookups& lookups, const SortedLookups& sorted, const Action& action,
               const StepControl* control, device::Stream stream) {
  const SortSpace space = LayOutSort(lookups.lookups, lookups.max_dim, sorted.workspace);
  ChunkWork work = {};
  work.bags = lookups;
  work.sample_bits = SampleBits(lookups.batch);
  work.control = control;
  for (int l = 0; l < space.levels; ++l) {
    work.level = space.level[l];
    const auto blocks = static_cast<unsigned>(DivideUp(work.level.chunks, kUpdateThreads / kLanes));
    if (l == 0) {
      work.rows = sorted.rows;
      work.places = sorted.places;
      work.bag_of = lookups.weights != nullptr ? space.bag_of : nullptr;
      TakeChunks<LookupSums<T>, Action, kLanes, kPath><<<blocks, kUpdateThreads, 0, Native(stream)>>>(work, action);
    } else {
      work.rows = space.level[l - 1].next_rows;
      work.features = space.level[l - 1].next_features;
      work.sums = space.level[l - 1].next_sums;
      TakeChunks<ChunkSums, Action, kLanes, kPath><<<blocks, kUpdateThreads, 0, Native(stream)>>>(work, action);
    }
    CheckLaunch("embedding backward");
  }
}

template <typename T, typename Action>
void RunAction(const EmbeddingLookups& lookups, const SortedLookups& sorted, const Action& action,
               const StepControl* control, device::Stream stream) {
  if (lookups.lookups <= 0) return;
  const bool narrow = lookups.max_dim <= 8 * kLaneColumns;
  if constexpr (Action::kHasPlain) {
    if (lookups.plain_rows && lookups.weights == nullptr && lookups.max_dim <= 32 * kLaneColumns) {
      if (narrow) return RunLevels<T, Action, 8, RowPath::kPlain>(lookups, sorted, action, control, stream);
      return RunLevels<T, Action, 32, RowPath::kPlain>(lookups, sorted, action, control, stream);
    }
  }
  if (narrow) return RunLevels<T, Action, 8, RowPath::kAny>(lookups, sorted, action, control, stream);
  RunLevels<T, Action, 32, RowPath::kAny>(lookups, sorted, action, control, stream);
}

template <typename T>
void UpdateRows(const EmbeddingLookups& lookups, const SortedLookups& sorted, const RowUpdate& update,
                const StepControl* control, device::Stream stream) {
  const auto t = static_cast<double>(update.step);
  RowStep step = {update, static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), t))),
                  static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), t)))};
  const auto run = [&](auto action) { RunAction<T>(lookups, sorted, action, control, stream); };
  switch (update.optimizer) {
    case RowOptimizer::kSgd:
      return run(TakeStep<RowOptimizer::kSgd>{step});
    case RowOptimizer::kAdagrad:
      return run(TakeStep<RowOptimizer::kAdagrad>{step});
    case RowOptimizer::kRowwiseAdagrad:
      return run(TakeStep<RowOptimizer::kRowwiseAdagrad>{step});
    case RowOptimizer::kAdam:
      return run(TakeStep<RowOptimizer::kAdam>{step});
    case RowOptimizer::kRowwiseAdam:
      return run(TakeStep<RowOptimizer::kRowwiseAdam>{step});
  }
}

}  // namespace portolan::kernels::cuda
