#pragma once

#include <algorithm>
#include <chrono>  // CUB and Thrust bring it, and programs count on that
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

#define CUB_STATIC_ASSERT(CONDITION, MESSAGE) static_assert(CONDITION, #MESSAGE)
#define CubDebug(E) (E)
#define CubDebugExit(E) static_cast<void>(E)

namespace cub {

struct Sum {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Difference {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    return a - b;
  }
};
struct Max {
  template <typename A, typename B>
  std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename A, typename B>
  std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};
struct Inequality {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a != b;
  }
};

template <typename K, typename V>
struct KeyValuePair {
  using Key = K;
  using Value = V;
  K key;
  V value;
};
struct ArgMax {
  template <typename T, typename K>
  KeyValuePair<K, T> operator()(const KeyValuePair<K, T>& a, const KeyValuePair<K, T>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename T, typename K>
  KeyValuePair<K, T> operator()(const KeyValuePair<K, T>& a, const KeyValuePair<K, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

// Iterators over values that are computed.
template <typename T, typename Get>
struct ComputedIterator {
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = T;
  using pointer = T*;
  using iterator_category = std::random_access_iterator_tag;
  Get get;
  difference_type at = 0;
  T operator*() const { return get(at); }
  T operator[](difference_type i) const { return get(at + i); }
  ComputedIterator operator+(difference_type i) const { return {get, at + i}; }
  ComputedIterator operator-(difference_type i) const { return {get, at - i}; }
  difference_type operator-(const ComputedIterator& other) const { return at - other.at; }
  ComputedIterator& operator++() { return ++at, *this; }
  ComputedIterator operator++(int) { return {get, at++}; }
  ComputedIterator& operator+=(difference_type i) { return at += i, *this; }
  bool operator==(const ComputedIterator& other) const { return at == other.at; }
  bool operator!=(const ComputedIterator& other) const { return at != other.at; }
  bool operator<(const ComputedIterator& other) const { return at < other.at; }
};

template <typename T>
struct CountFrom {
  T first;
  T operator()(std::ptrdiff_t i) const { return static_cast<T>(first + i); }
};
template <typename T, typename = std::ptrdiff_t>
struct CountingInputIterator : ComputedIterator<T, CountFrom<T>> {
  explicit CountingInputIterator(T first) : ComputedIterator<T, CountFrom<T>>{{first}, 0} {}
};
template <typename T>
struct Constant {
  T value;
  T operator()(std::ptrdiff_t) const { return value; }
};
template <typename T, typename = std::ptrdiff_t>
struct ConstantInputIterator : ComputedIterator<T, Constant<T>> {
  explicit ConstantInputIterator(T value) : ComputedIterator<T, Constant<T>>{{value}, 0} {}
};
template <typename T, typename Operator, typename Iterator>
struct Transformed {
  Iterator in;
  Operator op;
  T operator()(std::ptrdiff_t i) const { return op(in[i]); }
};
template <typename T, typename Operator, typename Iterator, typename = std::ptrdiff_t>
struct TransformInputIterator : ComputedIterator<T, Transformed<T, Operator, Iterator>> {
  TransformInputIterator(Iterator in, Operator op)
      : ComputedIterator<T, Transformed<T, Operator, Iterator>>{{in, op}, 0} {}
};

template <typename T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

struct NullType {};

// Bits of a key that compare as unsigned numbers the way the keys do: what radix sorts work on.
template <typename T>
struct Traits {
  using UnsignedBits =
      std::conditional_t<sizeof(T) == 1, unsigned char,
                         std::conditional_t<sizeof(T) == 2, unsigned short,
                                            std::conditional_t<sizeof(T) == 4, unsigned int, unsigned long long>>>;
  static constexpr UnsignedBits HIGH_BIT = UnsignedBits(1) << (8 * sizeof(T) - 1);
  static constexpr bool kUnsigned = std::is_integral_v<T> && std::is_unsigned_v<T>;
  static UnsignedBits TwiddleIn(UnsignedBits key) {
    if constexpr (kUnsigned) {
      return key;
    } else if constexpr (std::is_integral_v<T>) {
      return key ^ HIGH_BIT;
    } else {
      return key ^ ((key & HIGH_BIT) != 0 ? UnsignedBits(-1) : HIGH_BIT);
    }
  }
  static UnsignedBits TwiddleOut(UnsignedBits key) {
    if constexpr (kUnsigned) {
      return key;
    } else if constexpr (std::is_integral_v<T>) {
      return key ^ HIGH_BIT;
    } else {
      return key ^ ((key & HIGH_BIT) != 0 ? HIGH_BIT : UnsignedBits(-1));
    }
  }
};

}  // namespace cub
