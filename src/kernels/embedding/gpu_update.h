#pragma once

#include <cstdint>

#include "kernels/embedding/gpu_rows.h"
#include "kernels/embedding/gpu_runs.h"

// Sums the gradients of one row and takes one optimizer step with it, by a group of kLanes lanes, four columns a lane.
namespace portolan::kernels::PORTOLAN_BACKEND {

constexpr int kLaneColumns = 4;
using Quad = Columns<kLaneColumns>;

// The gradient of a row: of the lookups [begin, end) of the sorted entries.
struct RowGradient {
  const Runs* runs;
  int64_t begin;
  int64_t end;
  const float* sum_of_all;  // [dim], or null where the sum is still to be taken

  PORTOLAN_DEVICE Quad Sum(int column, int dim) const {
    if (sum_of_all != nullptr) {
      return LoadFloats<kLaneColumns>(sum_of_all, column, dim, RowsAreAligned(sum_of_all, 0, 16));
    }
    constexpr int kUnrolled = 4;  // gradients on their way at once
    Quad sum = {};
    for (int64_t entry = begin; entry < end; entry += kUnrolled) {
      Quad gradient[kUnrolled] = {};
      float factor[kUnrolled] = {};
      for (int k = 0; k < kUnrolled; ++k) {
        if (entry + k < end) gradient[k] = Load(entry + k, column, dim, &factor[k]);
      }
      for (int k = 0; k < kUnrolled; ++k) {
        for (int i = 0; i < kLaneColumns; ++i) sum.value[i] += factor[k] * gradient[k].value[i];
      }
    }
    return sum;
  }

  PORTOLAN_DEVICE Quad Load(int64_t entry, int column, int dim, float* factor) const {
    const EmbeddingBags& bags = runs->bags;
    const int64_t i = runs->LookupOf(entry);
    const int64_t bag = runs->space.bag[i];
    const int64_t f = bag / bags.batch;
    const EmbeddingFeature& feature = bags.features[f];
    *factor = bags.weights != nullptr ? bags.weights[i] : 1.0f;
    if (feature.pooling == BagPooling::kMean) *factor /= static_cast<float>(bags.offsets[bag + 1] - bags.offsets[bag]);
    const int64_t place =
        feature.pooling == BagPooling::kNone ? i - bags.offsets[f * bags.batch] : bag - f * bags.batch;
    return LoadFloats<kLaneColumns>(feature.output + place * feature.output_stride, column, dim,
                                    RowsAreAligned(feature.output, feature.output_stride * 4, 16));
  }
};

struct RowStep {
  RowUpdate update;
  float correction1;  // 1 / (1 - beta1^t)
  float correction2;  // 1 / (1 - beta2^t)
};

// The row of a run.
struct RowPlace {
  int32_t table_index;
  EmbeddingTable table;
  int64_t row;
};
PORTOLAN_DEVICE inline RowPlace RowOfRun(const Runs& runs, int64_t run) {
  const int64_t entry = runs.space.starts[run];
  const int64_t bag = runs.space.bag[runs.LookupOf(entry)];
  RowPlace place;
  place.table_index = runs.bags.features[bag / runs.bags.batch].table;
  place.table = runs.bags.tables[place.table_index];
  place.row = static_cast<int64_t>(runs.KeyOf(entry)) - runs.space.table_key[place.table_index];
  return place;
}

// One row in the hands of a group of lanes. Gradient: `Sum(column, dim)`, as RowGradient.
template <int kLanes, RowOptimizer kOptimizer, typename Gradient>
class RowUpdater {
 public:
  PORTOLAN_DEVICE RowUpdater(const RowStep& step, const RowPlace& place, const Gradient& gradient)
      : step_(step),
        gradient_(gradient),
        dim_(place.table.dim),
        format_(place.table.format),
        row_(static_cast<char*>(place.table.rows) + place.row * RowBytes(place.table.format, place.table.dim)),
        state_(place.table.state + place.row * RowStateFloats(kOptimizer, place.table.dim)),
        row_aligned_(RowsAreAligned(place.table.rows, RowBytes(place.table.format, place.table.dim), QuadBytes())),
        state_aligned_(RowsAreAligned(place.table.state,
                                      RowStateFloats(kOptimizer, place.table.dim) * 4 | place.table.dim * 4, 16)),
        key_(RowKey(step.update.seed,
                    (static_cast<uint64_t>(place.table_index) << 40) + static_cast<uint64_t>(place.row))) {}

  PORTOLAN_DEVICE void Run() {
    own_ = Scaled(gradient_.Sum(FirstColumn(), dim_));
    if constexpr (kOptimizer == RowOptimizer::kRowwiseAdagrad || kOptimizer == RowOptimizer::kRowwiseAdam)
      TakeRowState();
    Int8Range range = {0, 0, 0};
    if (format_ == RowFormat::kInt8) range = NewRange();
    for (int column = FirstColumn(); column < dim_; column += kStep)
      Store(column, NewWeights(column, kWriteState), range);
    if (format_ == RowFormat::kInt8) {
      SyncWave<kLanes>();  // all have read the old header
      if (FirstColumn() == 0) {
        device::Vec<float, 2> header;
        header.value[0] = range.scale;
        header.value[1] = range.bias;
        StoreVec(reinterpret_cast<float*>(row_), header);
      }
    }
  }

 private:
  static constexpr int kStep = kLanes * kLaneColumns;  // columns of the group at once
  enum WriteState { kKeepState, kWriteState };
  struct Int8Range {
    float scale;
    float bias;
    float inverse;  // 1 / scale, or 0
  };

  PORTOLAN_DEVICE int QuadBytes() const {
    if (format_ == RowFormat::kFp32) return VectorBytes<RowFormat::kFp32, kLaneColumns>();
    return format_ == RowFormat::kInt8 ? VectorBytes<RowFormat::kInt8, kLaneColumns>()
                                       : VectorBytes<RowFormat::kFp16, kLaneColumns>();
  }
  PORTOLAN_DEVICE Quad Weights(int column) const {
    switch (format_) {
      case RowFormat::kFp32:
        return LoadColumns<RowFormat::kFp32, kLaneColumns>(row_, column, dim_, row_aligned_);
      case RowFormat::kFp16:
        return LoadColumns<RowFormat::kFp16, kLaneColumns>(row_, column, dim_, row_aligned_);
      case RowFormat::kBf16:
        return LoadColumns<RowFormat::kBf16, kLaneColumns>(row_, column, dim_, row_aligned_);
      case RowFormat::kInt8:
        return LoadColumns<RowFormat::kInt8, kLaneColumns>(row_, column, dim_, row_aligned_);
    }
    return {};
  }
  PORTOLAN_DEVICE int FirstColumn() const { return ThreadIndex() % kLanes * kLaneColumns; }
  PORTOLAN_DEVICE Quad Scaled(Quad gradient) const {
    for (int i = 0; i < kLaneColumns; ++i) gradient.value[i] *= step_.update.gradient_scale;
    return gradient;
  }
  // The first columns of a lane are kept; a row with more than the group's width is summed again.
  PORTOLAN_DEVICE Quad GradientAt(int column) const {
    Quad gradient = own_;
    if (column != FirstColumn()) gradient = Scaled(gradient_.Sum(column, dim_));
    return gradient;
  }

  // rate_ = what the gradient (kRowwiseAdagrad) or m (kRowwiseAdam) is multiplied by.
  PORTOLAN_DEVICE void TakeRowState() {
    float squares = 0;
    for (int column = FirstColumn(); column < dim_; column += kStep) {
      const Quad gradient = GradientAt(column);
      for (int i = 0; i < kLaneColumns; ++i) squares += gradient.value[i] * gradient.value[i];
    }
    const RowUpdate& u = step_.update;
    constexpr bool adam = kOptimizer == RowOptimizer::kRowwiseAdam;
    float* row_state = state_ + (adam ? dim_ : 0);
    const float old = *row_state;
    const float mean_square = WaveSum<kLanes>(squares) / static_cast<float>(dim_);
    const float value = adam ? u.beta2 * old + (1 - u.beta2) * mean_square : old + mean_square;
    SyncWave<kLanes>();  // all have read the old value
    if (FirstColumn() == 0) *row_state = value;
    rate_ = adam ? u.learning_rate * step_.correction1 / (Sqrt(value * step_.correction2) + u.epsilon)
                 : u.learning_rate / (Sqrt(value) + u.epsilon);
  }

  PORTOLAN_DEVICE Quad NewWeights(int column, WriteState write) const {
    const RowUpdate& u = step_.update;
    const Quad gradient = GradientAt(column);
    Quad weights = Weights(column);
    if constexpr (kOptimizer == RowOptimizer::kSgd || kOptimizer == RowOptimizer::kRowwiseAdagrad) {
      const float rate = kOptimizer == RowOptimizer::kSgd ? u.learning_rate : rate_;
      for (int i = 0; i < kLaneColumns; ++i) weights.value[i] -= rate * gradient.value[i];
      return weights;
    }
    Quad first = LoadFloats<kLaneColumns>(state_, column, dim_, state_aligned_);
    if constexpr (kOptimizer == RowOptimizer::kAdagrad) {
      for (int i = 0; i < kLaneColumns; ++i) {
        first.value[i] += gradient.value[i] * gradient.value[i];
        weights.value[i] -= u.learning_rate * gradient.value[i] / (Sqrt(first.value[i]) + u.epsilon);
      }
    } else {
      for (int i = 0; i < kLaneColumns; ++i) {
        first.value[i] = u.beta1 * first.value[i] + (1 - u.beta1) * gradient.value[i];
      }
      if constexpr (kOptimizer == RowOptimizer::kRowwiseAdam) {
        for (int i = 0; i < kLaneColumns; ++i) weights.value[i] -= rate_ * first.value[i];
      } else {
        Quad second = LoadFloats<kLaneColumns>(state_ + dim_, column, dim_, state_aligned_);
        for (int i = 0; i < kLaneColumns; ++i) {
          second.value[i] = u.beta2 * second.value[i] + (1 - u.beta2) * gradient.value[i] * gradient.value[i];
          weights.value[i] -= u.learning_rate * (first.value[i] * step_.correction1) /
                              (Sqrt(second.value[i] * step_.correction2) + u.epsilon);
        }
        if (write == kWriteState) StoreFloats(second, state_ + dim_, column, dim_, state_aligned_);
      }
    }
    if (write == kWriteState) StoreFloats(first, state_, column, dim_, state_aligned_);
    return weights;
  }

  // Scale and bias for the minimum and maximum of the new weights; the state stays as it is.
  PORTOLAN_DEVICE Int8Range NewRange() const {
    float high = -kLargest, negated_low = -kLargest;
    for (int column = FirstColumn(); column < dim_; column += kStep) {
      const Quad weights = NewWeights(column, kKeepState);
      for (int i = 0; i < kLaneColumns; ++i) {
        if (column + i >= dim_) continue;
        high = weights.value[i] > high ? weights.value[i] : high;
        negated_low = -weights.value[i] > negated_low ? -weights.value[i] : negated_low;
      }
    }
    high = WaveMax<kLanes>(high);
    const float low = -WaveMax<kLanes>(negated_low);
    const float scale = (high - low) / 255.0f;
    return {scale, low, scale > 0 ? 1.0f / scale : 0.0f};
  }
  static constexpr float kLargest = 3.402823466e38f;

  PORTOLAN_DEVICE void Store(int column, const Quad& weights, const Int8Range& range) const {
    if (format_ == RowFormat::kFp32) {
      StoreFloats(weights, reinterpret_cast<float*>(row_), column, dim_, row_aligned_);
    } else if (format_ == RowFormat::kInt8) {
      device::Vec<uint8_t, kLaneColumns> bytes = {};
      for (int i = 0; i < kLaneColumns; ++i) {
        const float uniform = static_cast<float>(RandomBits(key_, static_cast<uint32_t>(column + i)) >> 8) *
                              FromBits(0x33800000u);  // 2^-24
        const float units = Floor((weights.value[i] - range.bias) * range.inverse + uniform);
        bytes.value[i] = static_cast<uint8_t>(units > 0 ? (units < 255 ? units : 255.0f) : 0.0f);
      }
      StoreElements(bytes, reinterpret_cast<uint8_t*>(row_) + 8, column);
    } else {
      device::Vec<uint16_t, kLaneColumns> halves = {};
      for (int i = 0; i < kLaneColumns; ++i) {
        const uint32_t random = RandomBits(key_, static_cast<uint32_t>(column + i));
        halves.value[i] = format_ == RowFormat::kFp16 ? FloatToHalfStochastic(weights.value[i], random)
                                                      : FloatToBf16Stochastic(weights.value[i], random);
      }
      StoreElements(halves, reinterpret_cast<uint16_t*>(row_), column);
    }
  }
  template <typename T>
  PORTOLAN_DEVICE void StoreElements(const device::Vec<T, kLaneColumns>& vec, T* elements, int column) const {
    if (row_aligned_ && column + kLaneColumns <= dim_) {
      StoreVec(elements + column, vec);
    } else {
      for (int i = 0; i < kLaneColumns; ++i) {
        if (column + i < dim_) elements[column + i] = vec.value[i];
      }
    }
  }

  const RowStep& step_;
  Gradient gradient_;
  int dim_;
  RowFormat format_;
  char* row_;
  float* state_;
  bool row_aligned_;
  bool state_aligned_;
  uint32_t key_;
  Quad own_ = {};
  float rate_ = 0;
};

template <int kLanes, RowOptimizer kOptimizer, typename Gradient>
PORTOLAN_DEVICE void UpdateRow(const RowStep& step, const RowPlace& place, const Gradient& gradient) {
  RowUpdater<kLanes, kOptimizer, Gradient>(step, place, gradient).Run();
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
