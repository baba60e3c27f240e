#pragma once

// Device-wide functions, carried out on the host. The first call asks for scratch memory, which they need none of.

#include "cub/types.cuh"

namespace cub {

namespace internal {

inline bool AsksForScratch(void* scratch, size_t& bytes) {
  if (scratch != nullptr) return false;
  bytes = 16;
  return true;
}
template <typename Iterator>
using ValueOf = std::remove_cvref_t<decltype(*std::declval<Iterator>())>;

template <typename Key, typename Value, typename Count>
void SortPairs(const Key* keys_in, Key* keys_out, const Value* values_in, Value* values_out, Count count,
               bool descending, int begin_bit, int end_bit) {
  const auto n = static_cast<size_t>(count);
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  const auto key = [&](size_t i) {
    if constexpr (std::is_integral_v<Key>) {
      using Bits = std::make_unsigned_t<Key>;
      if (begin_bit == 0 && end_bit >= static_cast<int>(8 * sizeof(Key))) return keys_in[i];
      const Bits mask = static_cast<Bits>(
          (end_bit >= static_cast<int>(8 * sizeof(Key)) ? ~Bits{0} : static_cast<Bits>((Bits{1} << end_bit) - 1)));
      return static_cast<Key>((static_cast<Bits>(keys_in[i]) & mask) >> begin_bit);
    } else {
      return keys_in[i];
    }
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return descending ? key(b) < key(a) : key(a) < key(b); });
  std::vector<Key> keys(n);
  std::vector<Value> values(values_in == nullptr ? 0 : n);
  for (size_t i = 0; i < n; ++i) {
    keys[i] = keys_in[order[i]];
    if (values_in != nullptr) values[i] = values_in[order[i]];
  }
  for (size_t i = 0; i < n; ++i) {
    keys_out[i] = keys[i];
    if (values_in != nullptr) values_out[i] = values[i];
  }
}

}  // namespace internal

struct DeviceReduce {
  template <typename In, typename Out, typename Count, typename Operator, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, Count count, Operator op, T initial,
                            cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    // As in CUB: bool and char are summed in int.
    std::decay_t<decltype(op(initial, in[0]))> result = initial;
    for (Count i = 0; i < count; ++i) result = op(result, in[i]);
    *out = result;
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr, bool = false) {
    return Reduce(scratch, bytes, in, out, count, cub::Sum(), internal::ValueOf<In>{});
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr, bool = false) {
    return Reduce(scratch, bytes, in, out, count, cub::Max(), std::numeric_limits<internal::ValueOf<In>>::lowest());
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr, bool = false) {
    return Reduce(scratch, bytes, in, out, count, cub::Min(), std::numeric_limits<internal::ValueOf<In>>::max());
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t ArgMax(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr) {
    return Arg(scratch, bytes, in, out, count, cub::ArgMax());
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t ArgMin(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr) {
    return Arg(scratch, bytes, in, out, count, cub::ArgMin());
  }

 private:
  template <typename In, typename Out, typename Count, typename Operator>
  static cudaError_t Arg(void* scratch, size_t& bytes, In in, Out out, Count count, Operator op) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    KeyValuePair<int, internal::ValueOf<In>> best{0, in[0]};
    for (Count i = 1; i < count; ++i) best = op(best, {static_cast<int>(i), in[i]});
    *out = best;
    return cudaSuccess;
  }
};

struct DeviceScan {
  template <typename In, typename Out, typename Operator, typename T, typename Count>
  static cudaError_t ExclusiveScan(void* scratch, size_t& bytes, In in, Out out, Operator op, T initial, Count count,
                                   cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    std::decay_t<decltype(op(initial, in[0]))> sum = initial;
    for (Count i = 0; i < count; ++i) {
      const internal::ValueOf<In> value = in[i];
      out[i] = sum;
      sum = op(sum, value);
    }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Operator, typename Count>
  static cudaError_t InclusiveScan(void* scratch, size_t& bytes, In in, Out out, Operator op, Count count,
                                   cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    std::decay_t<decltype(op(in[0], in[0]))> sum{};
    for (Count i = 0; i < count; ++i) {
      if (i == 0) {
        sum = in[i];
      } else {
        sum = op(sum, in[i]);
      }
      out[i] = sum;
    }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t ExclusiveSum(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr, bool = false) {
    return ExclusiveScan(scratch, bytes, in, out, cub::Sum(), internal::ValueOf<In>{}, count);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t InclusiveSum(void* scratch, size_t& bytes, In in, Out out, Count count, cudaStream_t = nullptr, bool = false) {
    return InclusiveScan(scratch, bytes, in, out, cub::Sum(), count);
  }
};

struct DeviceRadixSort {
#define PORTOLAN_SORT(NAME, DESCENDING)                                                                              \
  template <typename Key, typename Count>                                                                            \
  static cudaError_t SortKeys##NAME(void* scratch, size_t& bytes, const Key* in, Key* out, Count count,              \
                                    int begin = 0, int end = 8 * sizeof(Key), cudaStream_t = nullptr, bool = false) {              \
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;                                                \
    internal::SortPairs<Key, char>(in, out, nullptr, nullptr, count, DESCENDING, begin, end);                        \
    return cudaSuccess;                                                                                              \
  }                                                                                                                  \
  template <typename Key, typename Value, typename Count>                                                            \
  static cudaError_t SortPairs##NAME(void* scratch, size_t& bytes, const Key* in, Key* out, const Value* values_in,  \
                                     Value* values_out, Count count, int begin = 0, int end = 8 * sizeof(Key),       \
                                     cudaStream_t = nullptr, bool = false) {                                                       \
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;                                                \
    internal::SortPairs(in, out, values_in, values_out, count, DESCENDING, begin, end);                              \
    return cudaSuccess;                                                                                              \
  }                                                                                                                  \
  template <typename Key, typename Count>                                                                            \
  static cudaError_t SortKeys##NAME(void* scratch, size_t& bytes, DoubleBuffer<Key>& keys, Count count,              \
                                    int begin = 0, int end = 8 * sizeof(Key), cudaStream_t = nullptr, bool = false) {              \
    return SortKeys##NAME(scratch, bytes, keys.Current(), keys.Current(), count, begin, end);                        \
  }                                                                                                                  \
  template <typename Key, typename Value, typename Count>                                                            \
  static cudaError_t SortPairs##NAME(void* scratch, size_t& bytes, DoubleBuffer<Key>& keys,                          \
                                     DoubleBuffer<Value>& values, Count count, int begin = 0,                        \
                                     int end = 8 * sizeof(Key), cudaStream_t = nullptr, bool = false) {                            \
    return SortPairs##NAME(scratch, bytes, keys.Current(), keys.Current(), values.Current(), values.Current(),       \
                           count, begin, end);                                                                       \
  }
  PORTOLAN_SORT(, false)
  PORTOLAN_SORT(Descending, true)
#undef PORTOLAN_SORT
};

struct DeviceSelect {
  template <typename In, typename Flags, typename Out, typename Number, typename Count>
  static cudaError_t Flagged(void* scratch, size_t& bytes, In in, Flags flags, Out out, Number number, Count count,
                             cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    Count found = 0;
    for (Count i = 0; i < count; ++i) {
      if (flags[i]) out[found++] = in[i];
    }
    *number = found;
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Number, typename Count, typename Select>
  static cudaError_t If(void* scratch, size_t& bytes, In in, Out out, Number number, Count count, Select select,
                        cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    Count found = 0;
    for (Count i = 0; i < count; ++i) {
      const internal::ValueOf<In> value = in[i];
      if (select(value)) out[found++] = value;
    }
    *number = found;
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Number, typename Count>
  static cudaError_t Unique(void* scratch, size_t& bytes, In in, Out out, Number number, Count count,
                            cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    Count found = 0;
    for (Count i = 0; i < count; ++i) {
      if (i == 0 || !(in[i] == in[i - 1])) out[found++] = in[i];
    }
    *number = found;
    return cudaSuccess;
  }
};

struct DeviceRunLengthEncode {
  template <typename In, typename Unique, typename Lengths, typename Number, typename Count>
  static cudaError_t Encode(void* scratch, size_t& bytes, In in, Unique unique, Lengths lengths, Number number,
                            Count count, cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    Count runs = 0;
    for (Count i = 0; i < count; ++i) {
      if (i == 0 || !(in[i] == in[i - 1])) {
        unique[runs] = in[i];
        lengths[runs++] = 1;
      } else {
        ++lengths[runs - 1];
      }
    }
    *number = runs;
    return cudaSuccess;
  }
};

struct DeviceSegmentedReduce {
  template <typename In, typename Out, typename Begin, typename End, typename Operator, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, int segments, Begin begin, End end,
                            Operator op, T initial, cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    for (int s = 0; s < segments; ++s) {
      T result = initial;
      for (auto i = begin[s]; i < end[s]; ++i) result = op(result, in[i]);
      out[s] = result;
    }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, int segments, Begin begin, End end,
                         cudaStream_t = nullptr, bool = false) {
    return Reduce(scratch, bytes, in, out, segments, begin, end, cub::Sum(), internal::ValueOf<In>{});
  }
};

struct DeviceHistogram {
  template <typename Sample, typename Counter, typename Level, typename Count>
  static cudaError_t HistogramEven(void* scratch, size_t& bytes, Sample samples, Counter* histogram, int levels,
                                   Level low, Level high, Count count, cudaStream_t = nullptr, bool = false) {
    if (internal::AsksForScratch(scratch, bytes)) return cudaSuccess;
    for (int i = 0; i + 1 < levels; ++i) histogram[i] = 0;
    for (Count i = 0; i < count; ++i) {
      const auto value = static_cast<double>(samples[i]);
      if (value < static_cast<double>(low) || value >= static_cast<double>(high)) continue;
      ++histogram[static_cast<int>((value - static_cast<double>(low)) * (levels - 1) /
                                   (static_cast<double>(high) - static_cast<double>(low)))];
    }
    return cudaSuccess;
  }
};

}  // namespace cub
